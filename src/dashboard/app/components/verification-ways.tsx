import type { Account } from '../../../access/sign-in/schema.ts'
import { VerifyAtProvider } from '../openid/verify-at-provider.tsx'
import { canUsePasskeys, verifyWithPasskey } from '../passkeys/api.ts'
import { request } from '../request.ts'
import { CodeField } from './code-field.tsx'
import { Field, Form } from './form.tsx'

export interface WaysOptions {
  account: Account
  /** True if a password is not enough. */
  needsFactor?: boolean
  onDone(account: Account): void
}

/** The ways in which the account can confirm that it is present, or has its second factor. */
export function Ways({ account: { credentials, person }, needsFactor, onDone }: WaysOptions) {
  const { passkeys, hasPassword, hasSecondFactor } = credentials
  const hasPasskey = passkeys > 0 && canUsePasskeys()
  if (!needsFactor && !hasPasskey && !hasPassword) return <VerifyAtProvider />
  return (
    <>
      {!needsFactor && <p>You will not be asked again for ten minutes.</p>}
      {hasPasskey && (
        <Form action="Use a passkey" send={verifyWithPasskey} onDone={onDone}>
          {null}
        </Form>
      )}
      {(needsFactor ? hasSecondFactor : hasPassword) && (
        <Form
          action="Confirm"
          send={value =>
            needsFactor
              ? request('POST /api/session/second-factor', { code: value('code') })
              : request('POST /api/session/verify', { password: value('password') })
          }
          onDone={onDone}
        >
          {needsFactor ? (
            <CodeField
              label="Code"
              hint="The six digits of your authenticator app, or one of your recovery codes."
            />
          ) : (
            <>
              {/* Tells password managers which account this is. */}
              <input hidden name="username" autocomplete="username" readOnly value={person.email} />
              <Field
                name="password"
                label="Password"
                type="password"
                autocomplete="current-password"
              />
            </>
          )}
        </Form>
      )}
    </>
  )
}
