import type { Account } from '../../../accounts/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { NewPasswordField } from '../components/new-password-field.tsx'
import { showToast } from '../components/toast.tsx'
import { withVerification } from '../components/verification-prompt.tsx'
import { t } from '../locales/translate.tsx'
import { loadSession, setAccount } from '../session.ts'
import { changePassword, removePassword } from './api.ts'

interface PasswordOptions {
  account: Account
  /** Called after a change, which ends other sessions. */
  onChange(): void
}

/** The password of the account, if it has one. */
export function Password({ account: { credentials }, onChange }: PasswordOptions) {
  const { hasPassword, passkeys } = credentials
  const action = t(hasPassword ? 'account.changePassword' : 'account.setPassword')
  return (
    <section class="section" aria-labelledby="password">
      <h2 id="password">{t('account.passwordTitle')}</h2>
      {!hasPassword && <p class="note">{t('account.noPassword')}</p>}
      <div class="actions">
        <InlineForm key={action} action={action}>
          {close => (
            <PasswordForm
              action={action}
              hasPassword={hasPassword}
              onDone={() => {
                onChange()
                close()
              }}
            />
          )}
        </InlineForm>
        {hasPassword && passkeys > 0 && (
          <ConfirmButton
            isQuiet
            action={t('account.removePassword')}
            title={t('account.removePasswordTitle')}
            lead={t('account.removePasswordLead')}
            yes={t('account.removePassword')}
            send={removePassword}
            onDone={account => {
              setAccount(account)
              showToast({ message: t('account.passwordRemoved') })
            }}
          />
        )}
      </div>
    </section>
  )
}

interface PasswordFormOptions {
  action: string
  hasPassword: boolean
  onDone(): void
}

function PasswordForm({ action, hasPassword, onDone }: PasswordFormOptions) {
  return (
    <Form
      action={action}
      send={value =>
        withVerification(() =>
          changePassword({
            ...(hasPassword && { currentPassword: value('currentPassword') }),
            newPassword: value('newPassword'),
          }),
        )
      }
      onDone={({ sessionsEnded }) => {
        showToast({ message: t('account.passwordChanged', { count: sessionsEnded }) })
        void loadSession()
        onDone()
      }}
    >
      <p class="hint">{t('account.passwordChangeHint')}</p>
      {hasPassword && (
        <Field
          name="currentPassword"
          label={t('account.currentPassword')}
          type="password"
          autocomplete="current-password"
        />
      )}
      <NewPasswordField name="newPassword" label={t('account.newPassword')} />
    </Form>
  )
}
