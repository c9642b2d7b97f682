import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { GRACE_PERIODS } from '../grace-periods.ts'
import { ActionButton, DisclosureButton } from '../components/action-button.tsx'
import { withVerification } from '../components/verification-prompt.tsx'
import { Select } from '../components/fields.tsx'
import { Form } from '../components/form.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toProjectPath } from '../paths.ts'
import { AttemptDetails } from './attempt.tsx'
import { Attempts } from './attempts.tsx'
import {
  deleteWebhook,
  editWebhook,
  rotateSecret,
  switchWebhook,
  testWebhook,
  type Attempt,
  type WebhookRef,
  type Webhook,
} from './api.ts'
import { newSecret } from './new-secret.tsx'
import { pickChanges } from '../changes.ts'
import { WebhookForm } from './webhook-form.tsx'

interface ManageWebhookOptions {
  place: WebhookRef
  webhook: Webhook
  /** Called with the webhook after a change. */
  onChanged(webhook: Webhook): void
  /** Called when the webhook should be loaded again. */
  onActivity(): void
}

/** The actions of admins on a webhook. */
export function ManageWebhook({ place, webhook, onChanged, onActivity }: ManageWebhookOptions) {
  const { id, name, isEnabled } = webhook
  const { route } = useLocation()
  const [open, setOpen] = useState<'edit' | 'rotate'>()
  const [test, setTest] = useState<Attempt>()
  const unfold = { open, onOpen: setOpen }

  return (
    <>
      <div class="actions">
        <ActionButton
          isPrimary
          action="Send a test"
          send={() => testWebhook(place)}
          onDone={attempt => {
            setTest(attempt)
            onActivity()
          }}
        />
        <DisclosureButton name="edit" {...unfold}>
          Edit
        </DisclosureButton>
        <DisclosureButton name="rotate" {...unfold}>
          Rotate secret
        </DisclosureButton>
        {isEnabled ? (
          <ActionButton
            action="Disable"
            send={() => switchWebhook(place, 'disable')}
            onDone={disabled => {
              onChanged(disabled)
              showToast({
                message: 'Webhook disabled.',
                undo: () => switchWebhook(place, 'enable'),
                onUndone: onActivity,
              })
            }}
          />
        ) : (
          <ActionButton
            action="Enable"
            send={() => switchWebhook(place, 'enable')}
            onDone={onChanged}
          />
        )}
      </div>
      {open === 'edit' && (
        <div class="inline-form">
          <WebhookForm
            project={place.project}
            webhook={webhook}
            action="Save"
            send={(fields, before) => editWebhook(place, pickChanges(before ?? {}, fields))}
            onDone={edited => {
              setOpen(undefined)
              onChanged(edited)
              showToast({ message: 'Saved.' })
            }}
          />
        </div>
      )}
      {open === 'rotate' && (
        <Form
          action="Create new secret"
          send={value => withVerification(() => rotateSecret(place, Number(value('graceHours'))))}
          onDone={({ secret }) => {
            setOpen(undefined)
            newSecret.value = { webhook: id, secret }
            onActivity()
          }}
        >
          <Select
            name="graceHours"
            label="Also sign with old secret"
            hint="Until then, receivers can verify with either secret."
            options={GRACE_PERIODS}
            value="24"
          />
        </Form>
      )}
      {test && (
        <section class="section" aria-labelledby="test">
          <h2 id="test">Test result</h2>
          <div role="status">
            <AttemptDetails key={test.id} place={place} attempt={test} isOpen />
          </div>
        </section>
      )}
      <Attempts key={test?.id} place={place} isEnabled={isEnabled} onActivity={onActivity} />
      <section class="section" aria-labelledby="delete">
        <h2 id="delete">Delete</h2>
        <p class="note">Deletes its secrets and attempts, and drops its pending deliveries.</p>
        <ConfirmButton
          action="Delete this webhook"
          title={
            <>
              Delete <bdi>{name}</bdi>?
            </>
          }
          lead="No more events are sent to it. This cannot be undone."
          yes="Delete permanently"
          send={() => deleteWebhook(place)}
          onDone={() => {
            showToast({ message: 'Webhook deleted.' })
            route(toProjectPath('webhooks', place.project), true)
          }}
        />
      </section>
    </>
  )
}
