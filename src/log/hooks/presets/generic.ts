import { fillTemplate } from '../../events/template.ts'
import { toMetadataText } from '../../events/metadata-values.ts'
import { fromPlainText } from '../../events/new-event.ts'
import { findText, toLevel, type Draft, type Preset } from './received.ts'

/** The fields in which programs have the title of a message, and more about it. */
const TITLES = ['title', 'subject', 'message', 'text', 'content', 'msg', 'event', 'type', 'name']
const DESCRIPTIONS = ['description', 'message', 'body', 'text', 'content']

/** Any program. A template says what makes the event, or else the usual names of fields. */
export const generic: Preset = ({ headers, body, hook: { template } }) => {
  const find = (path: string) => findText(body, path)
  const filled = template
    ? Object.entries(fillTemplate(JSON.stringify(template), JSON.stringify(body))).flatMap(
        ([field, value]) => (value === null ? [] : [[field, toMetadataText(value)]]),
      )
    : []
  const own: Partial<Draft> = Object.fromEntries(filled)
  const usual = TITLES.find(find)
  const { title, description, icon } = fromPlainText(find(usual ?? '') ?? '')
  const more = DESCRIPTIONS.find(name => name !== usual && find(name))
  return [
    {
      ...{ title, icon },
      description: description ?? find(more ?? ''),
      url: find('url') ?? find('link'),
      ...own,
      level: toLevel(own.level ?? find('level') ?? find('severity')),
      key: headers.get('webhook-id') ?? headers.get('idempotency-key') ?? undefined,
    },
  ]
}
