import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { toFailure, type Result } from '../request.ts'
import { session } from '../session.ts'
import type { WaysOptions } from './verification-ways.tsx'

/** Resolves the request that waits for a verification; undefined when none waits. */
const waiting = signal<((isVerified: boolean) => void) | undefined>(undefined)

/** The content of the dialog, which is loaded when it is needed. */
const ways = signal<FunctionComponent<WaysOptions> | undefined>(undefined)

/**
 * Sends a request. If the server requires a verification, asks for it and repeats the request.
 * Needs a `VerificationPrompt` on the page. Cancelling the dialog gives the error `not_confirmed`.
 */
export async function withVerification<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok || answer.failure.code !== 'verification_needed') return answer
  const isVerified = (await loadWays()) && (await verify())
  if (isVerified) return send()
  const message = 'This requires that you confirm that it is you. Try again.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

async function loadWays(): Promise<boolean> {
  try {
    const { Ways } = await import('./verification-ways.tsx')
    ways.value = Ways
    return true
  } catch {
    return false // The server is down, or was updated.
  }
}

async function verify(): Promise<boolean> {
  const isVerified = await new Promise<boolean>(resolve => {
    waiting.value?.(false)
    waiting.value = resolve
  })
  waiting.value = undefined
  return isVerified
}

/** The dialog that asks the account to confirm that it is present. */
export function VerificationPrompt() {
  const dialog = useRef<HTMLDialogElement>(null)
  const respond = waiting.value
  const Ways = ways.value
  const account = session.value.kind === 'signed_in' ? session.value.account : undefined
  const { passkeys = 0, hasPassword = false } = account?.credentials ?? {}
  const isByPassword = hasPassword && passkeys === 0
  useEffect(() => {
    if (respond) dialog.current?.showModal()
    else dialog.current?.close()
  }, [respond])

  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm" onClose={() => respond?.(false)}>
      {respond && (
        <>
          <h2 id="confirm">{isByPassword ? 'Confirm your password' : 'Confirm that it is you'}</h2>
          {account && Ways && <Ways account={account} onDone={() => respond(true)} />}
          <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </>
      )}
    </dialog>
  )
}
