import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { GracePeriod } from '../components/fields.tsx'
import { FormButton, InlineForm } from '../components/inline-form.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toProjectPath } from '../paths.ts'
import { AttemptDetails } from './attempt.tsx'
import { Attempts } from './attempts.tsx'
import type { Attempt, Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
import { request } from '../request.ts'
import type { WebhookRef } from './recover.ts'
import { newSecret, WebhookForm } from './webhook-form.tsx'
import { pickChanges } from '../changes.ts'
import { Section } from '../components/item.tsx'

const PATH = '/api/projects/:projectId/webhooks/:webhookId'

interface ManageWebhookOptions {
  place: WebhookRef
  webhook: Webhook
  /** Called when the webhook should be loaded again. */
  onChanged(): void
}

/** The actions of admins on a webhook. */
export function ManageWebhook({ place, webhook, onChanged }: ManageWebhookOptions) {
  const { id, name, isEnabled } = webhook
  const { route } = useLocation()
  const [test, setTest] = useState<Attempt>()

  return (
    <>
      <div class="actions">
        <ActionButton
          isPrimary
          action="Send a test"
          send={() => request(`POST ${PATH}/test`, place)}
          onDone={attempt => {
            setTest(attempt)
            onChanged()
          }}
        />
        <InlineForm action="Edit">
          {close => (
            <WebhookForm
              project={place.projectId}
              webhook={webhook}
              action="Save"
              send={(fields, before) =>
                request(`PATCH ${PATH}`, { ...place, ...pickChanges(before ?? {}, fields) })
              }
              onDone={() => {
                close()
                onChanged()
                showToast('Saved.')
              }}
            />
          )}
        </InlineForm>
        <FormButton
          action="Rotate secret"
          submit="Create new secret"
          send={value =>
            request(`POST ${PATH}/rotate`, {
              ...place,
              graceHours: Number(value('graceHours')),
            })
          }
          onDone={({ secret }) => {
            newSecret.value = { webhook: id, secret }
            onChanged()
          }}
        >
          <GracePeriod
            name="graceHours"
            label="Also sign with old secret"
            hint="Until then, receivers can verify with either secret."
          />
        </FormButton>
        {isEnabled ? (
          <ActionButton
            action="Disable"
            send={() => request(`POST ${PATH}/disable`, place)}
            onDone={() => {
              onChanged()
              showToast({
                message: 'Webhook disabled.',
                undo: () => request(`POST ${PATH}/enable`, place),
                onUndone: onChanged,
              })
            }}
          />
        ) : (
          <ActionButton
            action="Enable"
            send={() => request(`POST ${PATH}/enable`, place)}
            onDone={onChanged}
          />
        )}
      </div>
      {test && (
        <Section id="test" title="Test result">
          <div role="status">
            <AttemptDetails key={test.id} place={place} attempt={test} isOpen />
          </div>
        </Section>
      )}
      <Attempts key={test?.id} place={place} isEnabled={isEnabled} onActivity={onChanged} />
      <Section id="delete" title="Delete">
        <p class="note">Deletes its secrets and attempts, and drops its pending deliveries.</p>
        <ConfirmButton
          action="Delete this webhook"
          title="Delete"
          name={name}
          lead="No more events are sent to it. This cannot be undone."
          yes="Delete permanently"
          send={() => request(`DELETE ${PATH}`, place)}
          onDone={() => {
            showToast('Webhook deleted.')
            route(toProjectPath('webhooks', place.projectId), true)
          }}
        />
      </Section>
    </>
  )
}
