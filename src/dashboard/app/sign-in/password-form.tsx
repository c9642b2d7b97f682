import type { Account } from '../../../accounts/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { request } from '../request.ts'
import { isInstalled, setAccount } from '../session.ts'

/** Signs in with an e-mail address and a password. */
export function PasswordForm() {
  return (
    <Form
      action="Sign in"
      send={value =>
        request<Account>('POST', '/api/session', {
          email: value('email'),
          password: value('password'),
          isInstalled: isInstalled(),
        })
      }
      onDone={setAccount}
    >
      <Field name="email" label="E-mail" type="email" autocomplete="username" />
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
    </Form>
  )
}
