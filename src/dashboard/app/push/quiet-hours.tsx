import { useState } from 'preact/hooks'
import type { Subscription } from '../../../push/schema.ts'
import { Field, Form } from '../components/form.tsx'
import type { Result } from '../request.ts'
import { editDevice } from './api.ts'
import { changeDevice } from './change-device.ts'

interface QuietHoursOptions {
  device: Subscription
  onChanged(): Promise<void>
}

/** When this browser is left in peace, by the clock on its wall. */
export function QuietHours({ device: { id, quietHours }, onChanged }: QuietHoursOptions) {
  const [isOpen, setOpen] = useState(false)
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

  const remove = () =>
    changeDevice({
      id,
      edit: { quietHours: null },
      undo: { quietHours },
      message: 'The quiet hours are removed.',
      onChanged,
    })

  return (
    <section class="section" aria-labelledby="quiet">
      <h2 id="quiet">Quiet hours in this browser</h2>
      <p class="page-lead">
        {quietHours
          ? `From ${quietHours.from} to ${quietHours.to}, ${toName(quietHours.timeZone)}: `
          : 'None. In quiet hours '}
        nothing is shown, nor later; it is all in the feed.
      </p>
      {isOpen ? (
        <>
          <Form
            action="Save"
            send={async value =>
              toFields(
                await editDevice(id, {
                  quietHours: { from: value('from'), to: value('to'), timeZone },
                }),
              )
            }
            onDone={async () => {
              setOpen(false)
              await onChanged()
            }}
          >
            <Field
              name="from"
              label="From"
              type="time"
              autocomplete="off"
              value={quietHours?.from ?? '22:00'}
            />
            <Field
              name="to"
              label="To"
              type="time"
              autocomplete="off"
              hint={`By the clock in ${toName(timeZone)}, summer and winter.`}
              value={quietHours?.to ?? '07:00'}
            />
          </Form>
          <button type="button" class="quiet-button" onClick={() => setOpen(false)}>
            Cancel
          </button>
        </>
      ) : (
        <>
          <button type="button" class="quiet-button" onClick={() => setOpen(true)}>
            {quietHours ? 'Change' : 'Set quiet hours'}
          </button>
          {quietHours && (
            <button type="button" class="quiet-button" onClick={remove}>
              Remove
            </button>
          )}
        </>
      )}
    </section>
  )
}

/** Zones are named by their cities. */
function toName(timeZone: string): string {
  return timeZone.slice(timeZone.lastIndexOf('/') + 1).replaceAll('_', ' ')
}

/** The server names the fields inside of what they are part of. */
function toFields<Data>(result: Result<Data>): Result<Data> {
  if (result.ok) return result
  const details = result.failure.details.map(one => ({ ...one, path: one.path.slice(1) }))
  return { ok: false, failure: { ...result.failure, details } }
}
