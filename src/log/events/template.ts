import { Fault } from '../../base/errors.ts'
import { parseExact } from '../../http/exact-json.ts'
import { isObject, readPath, toMetadataText } from './metadata-values.ts'
import { Event } from './schema.ts'
import { listPaths } from './search-filters.ts'

// A template is JSON. Only its parsed texts have places, so that nothing in an event can change the
// structure of the body.

/** The fields that a place can begin with. */
const FIELDS = [...Object.keys(Event.properties), 'project', 'organization', 'acknowledged']
const PLACE = /\{\{([^{}]*)\}\}/g
const WHOLE = /^\{\{([^{}]*)\}\}$/
/** The longest template, in bytes. */
export const MAX_TEMPLATE = 8_192
/** The most that an event fills into a template, in UTF-16 units of JSON. */
const MAX_FILLED = 1024 * 1024

/** Returns why a text is no template, as a sentence; undefined if it is one. */
export function findTemplateProblem(text: string): string | undefined {
  if (Buffer.byteLength(text) > MAX_TEMPLATE) return 'Must have at most 8,192 bytes'
  let unknown: string | undefined
  try {
    const value = mapTexts(parseExact(text).value, one => {
      for (const [place, path = ''] of one.matchAll(PLACE)) {
        if (!FIELDS.includes(toNames(path)[0] ?? '')) unknown ??= place
      }
    })
    if (!isObject(value)) return 'Must be a JSON object or array'
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return `Must be JSON, with each place inside of quotes: ${error.message}`
  }
  return unknown && `${unknown} is no field of an event. The fields are ${FIELDS.join(', ')}`
}

/**
 * Fills a template with the JSON of an event. A text that is one place becomes the value itself.
 * Throws `payload_too_large`.
 */
export function fillTemplate(template: string, dataJson: string): object {
  const data = parseExact(dataJson).value
  let left = MAX_FILLED
  const read = (path: string): unknown => {
    const [field = '', ...rest] = toNames(path)
    const paths = rest.length > 0 ? listPaths(rest) : [[]]
    const found = paths.map(names => readPath(data, [field, ...names]))
    const value = found.find(one => one !== undefined) ?? null
    left -= JSON.stringify(value).length
    if (left < 0) throw new Fault('payload_too_large', 'The event fills the body with over 1 MiB')
    return value
  }
  const filled = mapTexts(parseExact(template).value, text => {
    const [, path] = WHOLE.exec(text) ?? []
    if (path !== undefined) return read(path)
    return text.replace(PLACE, (_, one: string) => toMetadataText(read(one) ?? ''))
  })
  return filled as object // See findTemplateProblem.
}

function toNames(path: string): string[] {
  return path.trim().split('.')
}

/** Returns a value of JSON in which `replace` has replaced each text. Names of fields stay. */
function mapTexts(value: unknown, replace: (text: string) => unknown): unknown {
  if (typeof value === 'string') return replace(value)
  if (Array.isArray(value)) return value.map(one => mapTexts(one, replace))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, mapTexts(one, replace)]),
  )
}
