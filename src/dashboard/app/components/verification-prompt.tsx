import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { canUsePasskeys, verifyWithPasskey } from '../passkeys/api.ts'
import { request, toFailure, type Result } from '../request.ts'
import { session } from '../session.ts'
import { Field, Form } from './form.tsx'
import { VerifyAtProvider } from '../openid/verify-at-provider.tsx'

/** Resolves the request that waits for a verification; undefined when none waits. */
const waiting = signal<((isVerified: boolean) => void) | undefined>(undefined)

/**
 * Sends a request. If the server requires a verification, asks for it and repeats the request.
 * Needs a `VerificationPrompt` on the page. Cancelling the dialog gives the error `not_confirmed`.
 */
export async function withVerification<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok || answer.failure.code !== 'verification_needed') return answer
  const isVerified = await new Promise<boolean>(resolve => {
    waiting.value?.(false)
    waiting.value = resolve
  })
  waiting.value = undefined
  if (isVerified) return send()
  const message = 'This requires that you confirm that it is you. Try again.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

/** The dialog that asks the account to confirm that it is present. */
export function VerificationPrompt() {
  const dialog = useRef<HTMLDialogElement>(null)
  const respond = waiting.value
  const account = session.value.kind === 'signed_in' ? session.value.account : undefined
  useEffect(() => {
    if (respond) dialog.current?.showModal()
    else dialog.current?.close()
  }, [respond])

  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm" onClose={() => respond?.(false)}>
      {respond && (
        <>
          <h2 id="confirm">Confirm that it is you</h2>
          {account && <Ways account={account} onDone={() => respond(true)} />}
          <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </>
      )}
    </dialog>
  )
}

interface WaysOptions {
  account: Account
  onDone(): void
}

function Ways({ account: { credentials, person }, onDone }: WaysOptions) {
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
