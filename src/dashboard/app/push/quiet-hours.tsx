import type { Subscription } from '../../../push/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import type { Result } from '../request.ts'
import { editDevice } from './api.ts'
import { changeDevice } from './change-device.ts'
import { t } from '../locales/translate.tsx'

interface QuietHoursOptions {
  device: Subscription
  onChanged(): Promise<void>
}

/** The quiet hours of this browser, in local time. */
export function QuietHours({ device: { id, quietHours }, onChanged }: QuietHoursOptions) {
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone

  const remove = () =>
    changeDevice({
      id,
      edit: { quietHours: null },
      undo: { quietHours },
      message: t('push.quietRemoved'),
      onChanged,
    })

  return (
    <section class="section" aria-labelledby="quiet">
      <h2 id="quiet">{t('push.quietTitle')}</h2>
      <p class="page-lead">
        {quietHours
          ? t('push.quietSet', {
              from: quietHours.from,
              to: quietHours.to,
              zone: toName(quietHours.timeZone),
            })
          : t('push.quietUnset')}
      </p>
      <InlineForm action={t(quietHours ? 'push.change' : 'push.setQuiet')}>
        {close => (
          <Form
            action={t('push.save')}
            send={async value =>
              toFields(
                await editDevice(id, {
                  quietHours: { from: value('from'), to: value('to'), timeZone },
                }),
              )
            }
            onDone={async () => {
              close()
              await onChanged()
            }}
          >
            <Field
              name="from"
              label={t('push.from')}
              type="time"
              autocomplete="off"
              value={quietHours?.from ?? '22:00'}
            />
            <Field
              name="to"
              label={t('push.to')}
              type="time"
              autocomplete="off"
              hint={t('push.zoneHint', { zone: toName(timeZone) })}
              value={quietHours?.to ?? '07:00'}
            />
          </Form>
        )}
      </InlineForm>
      {quietHours && (
        <button type="button" class="quiet-button" onClick={remove}>
          {t('push.remove')}
        </button>
      )}
    </section>
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
