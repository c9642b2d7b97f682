import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { request, toFailure, type Result } from '../request.ts'
import { session } from '../session.ts'
import { Field, Form } from './form.tsx'

/** Resolves the request that waits for the password; undefined when none waits. */
const waiting = signal<((isConfirmed: boolean) => void) | undefined>(undefined)

/**
 * Sends a request. If the server requires the password again, asks for it and repeats the request.
 * Needs a `PasswordPrompt` on the page. Cancelling the dialog gives the error `not_confirmed`.
 */
export async function withPasswordPrompt<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok || answer.failure.code !== 'verification_needed') return answer
  const isConfirmed = await new Promise<boolean>(resolve => {
    waiting.value?.(false)
    waiting.value = resolve
  })
  waiting.value = undefined
  if (isConfirmed) return send()
  const message = 'This requires your password. Try again and enter it.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

/** The dialog that asks for the password. */
export function PasswordPrompt() {
  const dialog = useRef<HTMLDialogElement>(null)
  const respond = waiting.value
  const { value } = session
  useEffect(() => {
    if (respond) dialog.current?.showModal()
    else dialog.current?.close()
  }, [respond])

  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm" onClose={() => respond?.(false)}>
      {respond && (
        <>
          <h2 id="confirm">Confirm your password</h2>
          <p>You will not be asked again for ten minutes.</p>
          <Form
            action="Confirm"
            send={value => request('POST', '/api/session/verify', { password: value('password') })}
            onDone={() => respond(true)}
          >
            {/* Tells password managers which account this is. */}
            <input
              hidden
              name="username"
              autocomplete="username"
              readOnly
              value={value.kind === 'signed_in' ? value.account.person.email : ''}
            />
            <Field
              name="password"
              label="Password"
              type="password"
              autocomplete="current-password"
            />
          </Form>
          <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </>
      )}
    </dialog>
  )
}
