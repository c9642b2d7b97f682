import { useState } from 'preact/hooks'
import { CodeField } from '../components/code-field.tsx'
import { Field, Form } from '../components/form.tsx'
import { request } from '../request.ts'
import { checkCookie, isInstalled, setAccount } from '../session.ts'
import { QuietButton } from '../components/quiet-button.tsx'

/** Signs in with an e-mail address and a password, and with a code if the account requires one. */
export function PasswordForm() {
  const [needsCode, setNeedsCode] = useState(false)
  if (needsCode) return <CodeForm onCancel={() => setNeedsCode(false)} />
  return (
    <Form
      key="password"
      action="Sign in"
      send={async value => {
        const result = await request('POST /api/session', {
          email: value('email'),
          password: value('password'),
          isInstalled: isInstalled(),
        })
        return result.ok && !('needs' in result.data)
          ? checkCookie({ ok: true, data: result.data })
          : result
      }}
      onDone={data => ('needs' in data ? setNeedsCode(true) : setAccount(data))}
    >
      <Field name="email" label="E-mail" type="email" autocomplete="username webauthn" />
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
    </Form>
  )
}

function CodeForm({ onCancel }: { onCancel(): void }) {
  return (
    <>
      <Form
        key="code"
        action="Sign in"
        send={value => request('POST /api/session/code', { code: value('code') })}
        onDone={setAccount}
      >
        <CodeField
          label="Code"
          hint="The six digits of your authenticator app, or one of your recovery codes."
        />
      </Form>
      <p class="note">
        <QuietButton onClick={onCancel}>Back</QuietButton>
      </p>
    </>
  )
}
