import type { Account } from '../../../access/sign-in/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { NewPasswordField } from '../components/fields.tsx'
import { showToast } from '../components/toast.tsx'
import { loadSession, setAccount } from '../session.ts'
import { request } from '../request.ts'
import { Section } from '../components/item.tsx'

interface PasswordOptions {
  account: Account
  /** Called after a change, which ends other sessions. */
  onChange(): void
}

/** The password of the account, if it has one. */
export function Password({ account: { credentials }, onChange }: PasswordOptions) {
  const { hasPassword, passkeys } = credentials
  const action = hasPassword ? 'Change password' : 'Set a password'
  return (
    <Section id="password" title="Password">
      {!hasPassword && <p class="note">Your account has no password.</p>}
      <div class="actions">
        <FormButton
          key={action}
          action={action}
          submit={action}
          send={value =>
            request('PUT /api/me/password', {
              ...(hasPassword && { currentPassword: value('currentPassword') }),
              newPassword: value('newPassword'),
            })
          }
          onDone={({ sessionsEnded }) => {
            showToast(`Password changed. Other sessions ended: ${sessionsEnded.toLocaleString()}.`)
            void loadSession()
            onChange()
          }}
        >
          <p class="hint">You are signed out in all other browsers and stay signed in here.</p>
          {hasPassword && (
            <Field
              name="currentPassword"
              label="Current password"
              type="password"
              autocomplete="current-password"
            />
          )}
          <NewPasswordField name="newPassword" label="New password" />
        </FormButton>
        {hasPassword && passkeys > 0 && (
          <ConfirmButton
            isQuiet
            action="Remove password"
            title="Remove the password?"
            lead="You sign in with your passkeys alone. If you lose all of them, an owner of your organization can create a reset link."
            yes="Remove password"
            send={() => request('DELETE /api/me/password')}
            onDone={account => {
              setAccount(account)
              showToast('Password removed.')
            }}
          />
        )}
      </div>
    </Section>
  )
}
