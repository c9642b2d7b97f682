import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { listGracePeriods } from '../grace-periods.ts'
import { ActionButton, DisclosureButton } from '../components/action-button.tsx'
import { withVerification } from '../components/verification-prompt.tsx'
import { Select } from '../components/fields.tsx'
import { Form } from '../components/form.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { t, toRich } from '../locales/translate.tsx'
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
          action={t('webhooks.sendTest')}
          send={() => testWebhook(place)}
          onDone={attempt => {
            setTest(attempt)
            onActivity()
          }}
        />
        <DisclosureButton name="edit" {...unfold}>
          {t('words.edit')}
        </DisclosureButton>
        <DisclosureButton name="rotate" {...unfold}>
          {t('webhooks.rotateSecret')}
        </DisclosureButton>
        {isEnabled ? (
          <ActionButton
            action={t('webhooks.disable')}
            send={() => switchWebhook(place, 'disable')}
            onDone={disabled => {
              onChanged(disabled)
              showToast({
                message: t('webhooks.disabledNow'),
                undo: () => switchWebhook(place, 'enable'),
                onUndone: onActivity,
              })
            }}
          />
        ) : (
          <ActionButton
            action={t('webhooks.enable')}
            send={() => switchWebhook(place, 'enable')}
            onDone={onChanged}
          />
        )}
      </div>
      {open === 'edit' && (
        <WebhookForm
          project={place.project}
          webhook={webhook}
          action={t('words.save')}
          send={changes => editWebhook(place, changes)}
          onDone={edited => {
            setOpen(undefined)
            onChanged(edited)
            showToast({ message: t('words.saved') })
          }}
        />
      )}
      {open === 'rotate' && (
        <Form
          action={t('webhooks.createSecret')}
          send={value => withVerification(() => rotateSecret(place, Number(value('graceHours'))))}
          onDone={({ secret }) => {
            setOpen(undefined)
            newSecret.value = { webhook: id, secret }
            onActivity()
          }}
        >
          <Select
            name="graceHours"
            label={t('webhooks.keepSigning')}
            hint={t('webhooks.keepSigningHint')}
            options={listGracePeriods()}
            value="24"
          />
        </Form>
      )}
      {test && (
        <section class="section" aria-labelledby="test">
          <h2 id="test">{t('webhooks.testResult')}</h2>
          <div role="status">
            <AttemptDetails key={test.id} place={place} attempt={test} isOpen />
          </div>
        </section>
      )}
      <Attempts key={test?.id} place={place} isEnabled={isEnabled} onActivity={onActivity} />
      <section class="section" aria-labelledby="delete">
        <h2 id="delete">{t('words.delete')}</h2>
        <p class="note">{t('webhooks.deleteLead')}</p>
        <ConfirmButton
          action={t('webhooks.deleteThis')}
          title={toRich({ key: 'words.deleteName', values: { name: <bdi>{name}</bdi> } })}
          lead={t('webhooks.deleteConfirm')}
          yes={t('words.deletePermanently')}
          send={() => deleteWebhook(place)}
          onDone={() => {
            showToast({ message: t('webhooks.deleted') })
            route(toProjectPath('webhooks', place.project), true)
          }}
        />
      </section>
    </>
  )
}
