import { signal } from '@preact/signals'
import { toFailure, type Result } from '../request.ts'
import { findBarred, session } from '../session.ts'

/** A request that waits until the account has confirmed that it is present. */
interface Waiting {
  /** True if a password is not enough. */
  needsFactor: boolean
  respond(isVerified: boolean): void
}

/** The request for which `VerificationPrompt` asks; undefined when none waits. */
export const waiting = signal<Waiting | undefined>(undefined)

/**
 * Sends a request. If the server requires a verification or a second factor, asks for it, and
 * repeats the request. Needs a `VerificationPrompt` on the page. Cancelling the dialog gives the
 * error `not_confirmed`.
 */
export async function withVerification<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok) return answer
  const { code } = answer.failure
  const { value } = session
  // An organization that requires a factor has a page of its own.
  const needsFactor =
    code === 'second_factor_needed' && value.kind === 'signed_in' && !findBarred(value.account)
  if (!needsFactor && code !== 'verification_needed') return answer
  // A code is no verification, which may be required, too.
  if (await verify(needsFactor)) return withVerification(send)
  const message = 'This requires that you confirm that it is you. Try again.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

async function verify(needsFactor: boolean): Promise<boolean> {
  const isVerified = await new Promise<boolean>(respond => {
    waiting.value?.respond(false)
    waiting.value = { needsFactor, respond }
  })
  waiting.value = undefined
  return isVerified
}
