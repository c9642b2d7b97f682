import type { Account } from '../../../accounts/schema.ts'
import { VerifyAtProvider } from '../openid/verify-at-provider.tsx'
import { canUsePasskeys, verifyWithPasskey } from '../passkeys/api.ts'
import { request } from '../request.ts'
import { Field, Form } from './form.tsx'

export interface WaysOptions {
  account: Account
  onDone(): void
}

/** The ways in which the account can confirm that it is present. */
export function Ways({ account: { credentials, person }, onDone }: WaysOptions) {
  const hasPasskey = credentials.passkeys > 0 && canUsePasskeys()
  if (!hasPasskey && !credentials.hasPassword) return <VerifyAtProvider />
  return (
    <>
      <p>You will not be asked again for ten minutes.</p>
      {hasPasskey && (
        <Form action="Use a passkey" send={verifyWithPasskey} onDone={onDone}>
          {null}
        </Form>
      )}
      {credentials.hasPassword && <PasswordForm email={person.email} onDone={onDone} />}
    </>
  )
}

function PasswordForm({ email, onDone }: { email: string; onDone(): void }) {
  return (
    <>
      <Form
        action="Confirm"
        send={value => request('POST', '/api/session/verify', { password: value('password') })}
        onDone={onDone}
      >
        {/* Tells password managers which account this is. */}
        <input hidden name="username" autocomplete="username" readOnly value={email} />
        <Field name="password" label="Password" type="password" autocomplete="current-password" />
      </Form>
    </>
  )
}
