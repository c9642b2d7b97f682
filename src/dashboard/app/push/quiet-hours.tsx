import { useState } from 'preact/hooks'
import type { Subscription } from '../../../delivery/push/subscription-schema.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Checkbox, Fieldset } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Section } from '../components/item.tsx'
import { showResult } from '../components/toast.tsx'
import { toClockTime } from '../time.ts'
import { request, type Result } from '../request.ts'
import { changeDevice } from './devices.tsx'

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']
const MAX_ROWS = 14

type Row = NonNullable<Subscription['quietHours']>[number]

interface QuietHoursOptions {
  device: Subscription
  onChanged(): Promise<void>
}

/** The quiet hours of this browser, which are its own or those of all devices. */
export function QuietHours({ device, onChanged }: QuietHoursOptions) {
  const { id, ownQuietHours, hasQuietSummary, letsCriticalThrough } = device
  const rows = device.quietHours ?? []

  const save = (isOwn: boolean, quietHours: Row[] | null): Promise<Result<unknown>> =>
    isOwn
      ? request('PATCH /api/push/subscriptions/:subscriptionId', { subscriptionId: id, quietHours })
      : request('PUT /api/push/quiet-hours', { quietHours: quietHours ?? [] })
  async function remove() {
    const removed = await save(ownQuietHours, null)
    const toast = { message: 'Quiet hours removed.', undo: () => save(ownQuietHours, rows) }
    if (showResult(removed, { ...toast, onUndone: onChanged })) await onChanged()
  }
  const toForm = (action: string, isOwn: boolean) => (
    <FormButton
      action={action}
      submit="Save"
      send={async value => toFields(await save(isOwn, readRows(value)))}
      onDone={() => void onChanged()}
    >
      <Rows initial={rows} />
    </FormButton>
  )

  return (
    <Section id="quiet" title="Quiet hours">
      <p class="page-lead">
        {ownQuietHours ? 'In this browser only: ' : 'On all your devices: '}
        {rows.map(toText).join('; ') || 'none'}. During quiet hours,{' '}
        {letsCriticalThrough ? 'all but critical notifications' : 'notifications'} are suppressed,
        not delayed. The events still appear in the feed.
      </p>
      {toForm(rows.length > 0 ? 'Change' : 'Set quiet hours', ownQuietHours)}
      {!ownQuietHours && rows.length > 0 && toForm('Change in this browser only', true)}
      {(rows.length > 0 || ownQuietHours) && (
        <QuietButton onClick={remove}>
          {ownQuietHours ? 'Use those of all devices' : 'Remove'}
        </QuietButton>
      )}
      <QuietButton
        aria-pressed={hasQuietSummary}
        onClick={() =>
          changeDevice({
            id,
            edit: { hasQuietSummary: !hasQuietSummary },
            undo: { hasQuietSummary },
            message: hasQuietSummary ? 'No summary afterwards.' : 'A summary comes afterwards.',
            onChanged,
          })
        }
      >
        Sum up afterwards
      </QuietButton>
    </Section>
  )
}

/** The rows of the form. The hidden field has their number. */
export function Rows({ initial }: { initial: readonly Row[] }) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  const night = { days: [1, 2, 3, 4, 5, 6, 7], from: '22:00', to: '07:00', timeZone }
  const [rows, setRows] = useState(() =>
    (initial.length > 0 ? initial : [night]).map((row, key) => ({ ...row, key })),
  )
  return (
    <>
      <input type="hidden" name="count" value={rows.length} />
      <p class="hint">The same time twice is a whole day.</p>
      {rows.map(({ key, days, from, to, timeZone: zone }, nth) => (
        <Fieldset key={key} legend={`Time ${nth + 1}`} name={`${nth}.days`}>
          <div class="days">
            {DAYS.map((name, at) => (
              <Checkbox key={name} name={`${nth}.${at + 1}`} isOn={days.includes(at + 1)}>
                {name}
              </Checkbox>
            ))}
          </div>
          <div class="days">
            <Field name={`${nth}.from`} label="From" type="time" value={from} />
            <Field name={`${nth}.to`} label="To" type="time" value={to} />
          </div>
          <Field name={`${nth}.timeZone`} label="Time zone" value={zone} />
          <QuietButton onClick={() => setRows(rows.filter(row => row.key !== key))}>
            Remove time {nth + 1}
          </QuietButton>
        </Fieldset>
      ))}
      {rows.length < MAX_ROWS && (
        <div>
          <QuietButton
            onClick={() => setRows([...rows, { ...night, key: (rows.at(-1)?.key ?? 0) + 1 }])}
          >
            Add a time
          </QuietButton>
        </div>
      )}
    </>
  )
}

export function readRows(value: (name: string) => string): Row[] {
  return Array.from({ length: Number(value('count')) }, (_, nth) => ({
    days: [1, 2, 3, 4, 5, 6, 7].filter(day => value(`${nth}.${day}`) === 'on'),
    from: value(`${nth}.from`),
    to: value(`${nth}.to`),
    timeZone: value(`${nth}.timeZone`),
  }))
}

/** Returns a row as text, with the city of its time zone. */
export function toText({ days, from, to, timeZone }: Row): string {
  const names = days.length === 7 ? 'every day' : days.map(day => DAYS[day - 1]).join(', ')
  const city = timeZone.slice(timeZone.lastIndexOf('/') + 1).replaceAll('_', ' ')
  const [start, end] = [from, to].map(time => toClockTime(Date.parse(`2000-01-01T${time}`)))
  return `${names} ${from === to ? `for 24 hours from ${start}` : `from ${start} to ${end}`} (${city})`
}

/** Names errors after the fields of their row. */
function toFields<Data>(result: Result<Data>): Result<Data> {
  if (result.ok) return result
  const details = result.failure.details.map(one => ({
    ...one,
    path: [one.path.slice(1, 3).join('.')],
  }))
  return { ok: false, failure: { ...result.failure, details } }
}
