import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { NewPasswordField } from '../components/new-password-field.tsx'
import { showToast } from '../components/toast.tsx'
import { changePassword } from './api.ts'

/** The password of the account. `onChange` is called after a change, which ends other sessions. */
export function Password({ onChange }: { onChange(): void }) {
  return (
    <section class="section" aria-labelledby="password">
      <h2 id="password">Password</h2>
      <div class="actions">
        <InlineForm action="Change password">
          {close => (
            <PasswordForm
              onDone={() => {
                onChange()
                close()
              }}
            />
          )}
        </InlineForm>
      </div>
    </section>
  )
}

function PasswordForm({ onDone }: { onDone(): void }) {
  return (
    <Form
      action="Change password"
      send={value =>
        changePassword({
          currentPassword: value('currentPassword'),
          newPassword: value('newPassword'),
        })
      }
      onDone={({ sessionsEnded }) => {
        showToast({ message: `Password changed. Other sessions ended: ${sessionsEnded}.` })
        onDone()
      }}
    >
      <p class="hint">You are signed out in all other browsers and stay signed in here.</p>
      <Field
        name="currentPassword"
        label="Current password"
        type="password"
        autocomplete="current-password"
      />
      <NewPasswordField name="newPassword" label="New password" />
    </Form>
  )
}
