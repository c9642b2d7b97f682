import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { ActionButton, DisclosureButton } from '../components/action-button.tsx'
import { withPasswordPrompt } from '../components/password-prompt.tsx'
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
import { WebhookForm } from './webhook-form.tsx'

const GRACES = [
  { value: '0', text: 'No longer' },
  { value: '1', text: 'For an hour' },
  { value: '24', text: 'For a day' },
  { value: '168', text: 'For a week' },
]

interface ManageWebhookOptions {
  place: WebhookRef
  webhook: Webhook
  /** Told what it is like now. */
  onChanged(webhook: Webhook): void
  /** Told when it has to be read again. */
  onActivity(): void
}

/** What admins can do with a webhook. */
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
          Rotate the secret
        </DisclosureButton>
        {isEnabled ? (
          <ActionButton
            action="Disable"
            send={() => switchWebhook(place, 'disable')}
            onDone={disabled => {
              onChanged(disabled)
              showToast({
                message: 'It is disabled.',
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
        <WebhookForm
          project={place.project}
          webhook={webhook}
          action="Save"
          send={changes => editWebhook(place, changes)}
          onDone={edited => {
            setOpen(undefined)
            onChanged(edited)
            showToast({ message: 'Saved.' })
          }}
        />
      )}
      {open === 'rotate' && (
        <Form
          action="Make a new secret"
          send={value => withPasswordPrompt(() => rotateSecret(place, Number(value('graceHours'))))}
          onDone={({ secret }) => {
            setOpen(undefined)
            newSecret.value = { webhook: id, secret }
            onActivity()
          }}
        >
          <Select
            name="graceHours"
            label="The old secret signs, too"
            hint="Until then a receiver that knows either of them can verify."
            options={GRACES}
            value="24"
          />
        </Form>
      )}
      {test && (
        <section class="section" aria-labelledby="test">
          <h2 id="test">The test</h2>
          <div role="status">
            <AttemptDetails key={test.id} place={place} attempt={test} isOpen />
          </div>
        </section>
      )}
      <Attempts key={test?.id} place={place} isEnabled={isEnabled} onActivity={onActivity} />
      <section class="section" aria-labelledby="delete">
        <h2 id="delete">Delete</h2>
        <p class="note">Its secrets and its attempts go, and what waits for it is dropped.</p>
        <ConfirmButton
          action="Delete this webhook"
          title={
            <>
              Delete <bdi>{name}</bdi>?
            </>
          }
          lead="Nothing is sent to it any more, and nothing brings it back."
          yes="Delete for good"
          send={() => deleteWebhook(place)}
          onDone={() => {
            showToast({ message: 'The webhook is deleted.' })
            route(toProjectPath('webhooks', place.project), true)
          }}
        />
      </section>
    </>
  )
}
