import type { Account } from '../../../access/sign-in/schema.ts'
import { canUsePasskeys, verifyWithPasskey } from '../passkeys/api.ts'
import { request } from '../request.ts'
import { CodeField } from './fields.tsx'
import { Field, Form } from './form.tsx'
import { Loaded, useRoute } from './query.tsx'
import { SignOutButton } from './buttons.tsx'
import { showResult } from './toast.tsx'
import { startVisit } from '../openid/api.ts'

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

/** Lets an account without another credential confirm at a provider that it is present. */
function VerifyAtProvider() {
  const connections = useRoute('GET /api/me/connections')

  async function visit(provider: string) {
    const next = location.pathname + location.search
    showResult(await startVisit({ provider, purpose: 'verify', next }))
  }

  return (
    <Loaded query={connections}>
      {({ items, providers }) => {
        // The proxy, and a provider that is gone, cannot be visited.
        const connected = providers.filter(one => items.some(item => item.provider === one.name))
        return connected.length > 0 ? (
          <>
            <p>You come back to this page. Then repeat the action.</p>
            {connected.map(({ name, label }) => (
              <button key={name} type="button" class="button" onClick={() => visit(name)}>
                Confirm at <bdi>{label}</bdi>
              </button>
            ))}
          </>
        ) : (
          <>
            <p>Your account has no password. Sign out and sign in again, then repeat this.</p>
            <SignOutButton />
          </>
        )
      }}
    </Loaded>
  )
}
