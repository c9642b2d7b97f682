import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Select, type SelectOption } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import type { Data, Input } from '../routes.ts'

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

export type Silence = Data<`GET ${typeof ROUTE}`>['items'][number]

/** The silences of a project. Undefined until loaded. */
export function useSilences(project: string) {
  const options = { when: alarmChanges, everyMs: MINUTE_MS }
  return useRoute(`GET ${ROUTE}`, { projectId: project }, options)
}

interface SilencedOptions {
  silences: ReturnType<typeof useSilences>
  place: Pick<Place, 'channelId' | 'thread'>
}

/** Says who keeps a channel or a thread quiet, until when and why. Nothing if nobody does. */
export function Silenced({ silences, place: { channelId, thread } }: SilencedOptions) {
  const found = silences.data?.items.find(
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
  return <Silenced silences={useSilences(project)} place={place} />
}

/** When a silence ends. */
export function SilenceEnd({ endsAt }: Pick<Silence, 'endsAt'>) {
  return endsAt === null ? 'until nothing in it is open' : <Clock word="until" at={endsAt} />
}

/** A word, and a time with its date on other days. */
export function Clock({ word, at }: { word: string; at: string }) {
  return (
    <>
      {word}&nbsp;
      <Timestamp atMs={Date.parse(at)} hasDate isClockTime />
    </>
  )
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
}

/** The places of an event, the narrowest first. */
export function listPlaces({ channelId: channel, channelName, thread }: Place): SelectOption[] {
  return [
    ...(thread === undefined ? [] : [toPlace({ channel, thread }, `Only “${thread}”`)]),
    toPlace({ channel }, `All of ${channelName}`),
    toPlace({}, 'The whole project'),
  ]
}

export function toPlace(fields: Fields, text: string): SelectOption {
  return { value: JSON.stringify(fields), text, isUserText: true }
}
