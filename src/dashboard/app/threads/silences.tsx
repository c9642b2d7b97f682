import type { ComponentChildren } from 'preact'
import { takeStart } from '../../../base/display-text.ts'
import { useState } from 'preact/hooks'
import { Select, type SelectOption } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { showToast } from '../components/toast.tsx'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import type { Input } from '../routes.ts'
import { SilenceEnd, useSilences, type Silence } from './project-silence.tsx'

/** A select is as wide as a phone. */
const MAX_TITLE = 20
const ROUTE = '/api/projects/:projectId/silences'
const LENGTHS = [
  { value: '30', text: '30 minutes' },
  { value: '60', text: '1 hour' },
  { value: '480', text: '8 hours' },
  { value: '1440', text: '1 day' },
  { value: '10080', text: '1 week' },
]
const RESOLVED = { value: 'resolved', text: 'Until it is resolved' }
const WEEKLY = { value: 'hours', text: 'Every week at these hours' }

interface SilencedOptions {
  items: readonly Silence[] | undefined
  place: Omit<Place, 'channelName' | 'title'>
}

/** Says who keeps a channel or a thread quiet, until when and why. Nothing if nobody does. */
export function Silenced({ items, place: { channelId, thread } }: SilencedOptions) {
  const found = items?.find(
    one =>
      one.isActive &&
      (one.channelId ?? channelId) === channelId &&
      (one.thread ?? thread) === thread,
  )
  if (!found) return null
  return (
    <p class="item-details">
      Silenced by <bdi>{found.by}</bdi> <SilenceEnd {...found} />: <bdi>{found.reason}</bdi>
    </p>
  )
}

/** The same, for a page that shows one place. */
export function SilencedPlace({
  project,
  place,
}: Pick<SilencedOptions, 'place'> & { project: string }) {
  return <Silenced items={useSilences(project).data?.items} place={place} />
}

interface SilenceButtonOptions {
  project: string
  /** The choices of what to keep quiet, by the fields of their requests. */
  places: readonly SelectOption[]
  action: string
  isPrimary?: boolean
  /** The fields of weekly hours, and what reads them. */
  hours?: { fields: ComponentChildren; read(value: (name: string) => string): Hours }
}

type Fields = { channel?: string; thread?: string }
type Hours = NonNullable<Input<`POST ${typeof ROUTE}`>['hours']>

/** A button with a form to keep something quiet for everybody. */
export function SilenceButton({ project, places, hours, ...button }: SilenceButtonOptions) {
  return (
    <FormButton
      {...button}
      submit="Silence"
      send={value => {
        const length = value('length')
        return request(`POST ${ROUTE}`, {
          projectId: project,
          ...(JSON.parse(value('place')) as Fields),
          ...(length === WEEKLY.value
            ? { hours: hours?.read(value) ?? [] }
            : length === RESOLVED.value
              ? { untilResolved: true }
              : { minutes: Number(length) }),
          reason: value('reason'),
        })
      }}
      onDone={() => {
        alarmChanges.value += 1
        showToast('Silenced.')
      }}
    >
      <Select
        name="place"
        label="Silence"
        hint="For everybody. Webhooks still get the events."
        options={places}
      />
      <Length hours={hours?.fields} />
      <Field name="reason" label="Why" hint="Everybody in the project reads it." />
    </FormButton>
  )
}

function Length({ hours }: { hours: ComponentChildren }) {
  const [length, setLength] = useState('')
  const options = [...LENGTHS, RESOLVED, ...(hours ? [WEEKLY] : [])]
  return (
    <>
      <Select name="length" label="How long" options={options} onChange={setLength} />
      {length === WEEKLY.value && hours}
    </>
  )
}

interface Place {
  channelId: string
  channelName: string
  thread?: string | undefined
  title: string
}

/** The places of an event, the narrowest first. */
export function listPlaces({
  channelId: channel,
  channelName,
  thread,
  title,
}: Place): SelectOption[] {
  return [
    ...(thread === undefined
      ? []
      : [
          toPlace(
            { channel, thread },
            `Only “${title.length > MAX_TITLE ? `${takeStart(title, MAX_TITLE)}…` : title}”`,
          ),
        ]),
    toPlace({ channel }, `All of ${channelName}`),
    toPlace({}, 'The whole project'),
  ]
}

export function toPlace(fields: Fields, text: string): SelectOption {
  return { value: JSON.stringify(fields), text, isUserText: true }
}
