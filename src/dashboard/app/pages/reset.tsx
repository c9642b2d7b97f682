import { useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField } from '../components/fields.tsx'
import { StandalonePage } from '../components/standalone-page.tsx'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { linkSecret, parseLinkSecret } from '../link-secret.ts'
import { loadSession } from '../session.ts'

/** Sets a new password with the secret of a reset link. */
export default function Reset() {
  const [isDone, setDone] = useState(false)
  if (isDone) {
    return (
      <StandalonePage title="Password changed" lead="You were signed out on all devices.">
        <p>
          <a class="button" href={PATHS.signIn}>
            Sign in
          </a>
        </p>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage
      title="New password"
      lead="The link works once. Choose a password that you use nowhere else."
    >
      <Form
        action="Set password"
        send={value =>
          request('POST /api/reset', {
            token: linkSecret.value || parseLinkSecret(value('token')),
            password: value('password'),
          })
        }
        onDone={() => {
          linkSecret.value = ''
          // The session in this browser may have ended, too.
          void loadSession()
          setDone(true)
        }}
      >
        {!linkSecret.value && (
          <Field
            name="token"
            label="Reset link"
            hint="Paste the link that you received from an owner of your organization."
          />
        )}
        <NewPasswordField label="New password" />
      </Form>
    </StandalonePage>
  )
}
