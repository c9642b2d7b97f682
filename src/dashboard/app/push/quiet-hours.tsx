import type { Subscription } from '../../../delivery/push/subscription-schema.ts'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { request, type Result } from '../request.ts'
import { changeDevice } from './devices.tsx'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'

interface QuietHoursOptions {
  device: Subscription
  onChanged(): Promise<void>
}

/** The quiet hours of this browser, in local time. */
export function QuietHours({ device, onChanged }: QuietHoursOptions) {
  const { id, quietHours, letsCriticalThrough } = device
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const withheld = letsCriticalThrough
    ? 'notifications except those of critical events'
    : 'notifications'

  const remove = () =>
    changeDevice({
      id,
      edit: { quietHours: null },
      undo: { quietHours },
      message: 'Quiet hours removed.',
      onChanged,
    })

  return (
    <Section id="quiet" title="Quiet hours in this browser">
      <p class="page-lead">
        {quietHours
          ? `From ${quietHours.from} to ${quietHours.to} (${toName(quietHours.timeZone)}), ${withheld} are suppressed, not delayed. The events still appear in the feed.`
          : `No quiet hours set. During quiet hours, ${withheld} are suppressed, not delayed. The events still appear in the feed.`}
      </p>
      <FormButton
        action={quietHours ? 'Change' : 'Set quiet hours'}
        submit="Save"
        send={async value =>
          toFields(
            await request('PATCH /api/push/subscriptions/:subscriptionId', {
              subscriptionId: id,
              quietHours: { from: value('from'), to: value('to'), timeZone },
            }),
          )
        }
        onDone={() => void onChanged()}
      >
        <Field name="from" label="From" type="time" value={quietHours?.from ?? '22:00'} />
        <Field
          name="to"
          label="To"
          type="time"
          hint={`Local time in ${toName(timeZone)}, with daylight saving time.`}
          value={quietHours?.to ?? '07:00'}
        />
      </FormButton>
      {quietHours && <QuietButton onClick={remove}>Remove</QuietButton>}
    </Section>
  )
}

/** The city of a time zone. */
function toName(timeZone: string): string {
  return timeZone.slice(timeZone.lastIndexOf('/') + 1).replaceAll('_', ' ')
}

/** Strips the `quietHours` prefix from the paths of errors. */
function toFields<Data>(result: Result<Data>): Result<Data> {
  if (result.ok) return result
  const details = result.failure.details.map(one => ({ ...one, path: one.path.slice(1) }))
  return { ok: false, failure: { ...result.failure, details } }
}
