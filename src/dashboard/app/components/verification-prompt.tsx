import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { toFailure, type Result } from '../request.ts'
import { findBarred, session } from '../session.ts'
import type { WaysOptions } from './verification-ways.tsx'
import { QuietButton } from './quiet-button.tsx'

/** Resolves the request that waits for a verification; undefined when none waits. */
const waiting = signal<((isVerified: boolean) => void) | undefined>(undefined)
/** True if a password is not enough for the request that waits. */
let needsFactor = false

/** The content of the dialog, which is loaded when it is needed. */
const ways = signal<FunctionComponent<WaysOptions> | undefined>(undefined)

/**
 * Sends a request. If the server requires a verification or a second factor, asks for it, and
 * repeats the request. Needs a `VerificationPrompt` on the page. Cancelling the dialog gives the
 * error `not_confirmed`.
 */
export async function withVerification<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok || !canAsk(answer.failure.code)) return answer
  const isVerified = (await loadWays()) && (await verify())
  // A code is no verification, which may be required, too.
  if (isVerified) return withVerification(send)
  const message = 'This requires that you confirm that it is you. Try again.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

function canAsk(code: string): boolean {
  const { value } = session
  // An organization that requires a factor has a page of its own.
  needsFactor =
    code === 'second_factor_needed' && value.kind === 'signed_in' && !findBarred(value.account)
  return needsFactor || code === 'verification_needed'
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
  // A code can be followed by a password. The dialog then closes and opens at once, and the event
  // of the closing comes when it is open again.
  useLayoutEffect(() => {
    if (respond) {
      dialog.current?.showModal()
      // Its form could not take the focus while the dialog was closed.
      dialog.current?.querySelector<HTMLElement>('input:not([hidden])')?.focus()
    } else dialog.current?.close()
  }, [respond])

  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="confirm"
      onClose={() => dialog.current?.open || respond?.(false)}
    >
      {respond && (
        <>
          <h2 id="confirm">Confirm that it is you</h2>
          {account && Ways && <Ways {...{ account, needsFactor }} onDone={() => respond(true)} />}
          <QuietButton onClick={() => dialog.current?.close()}>Cancel</QuietButton>
        </>
      )}
    </dialog>
  )
}
