import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { request, toFailure, type Result } from '../request.ts'
import { session } from '../session.ts'
import { Field, Form } from './form.tsx'

/** Somebody who waits for the password; undefined while nobody does. */
const asking = signal<((isConfirmed: boolean) => void) | undefined>(undefined)

/**
 * Makes a request that may need the password once more, and makes it again when that was typed. The page must have a
 * `Confirmation` in it.
 */
export async function withPasswordPrompt<Data>(
  send: () => Promise<Result<Data>>,
): Promise<Result<Data>> {
  const answer = await send()
  if (answer.ok || answer.failure.code !== 'verification_needed') return answer
  const isConfirmed = await new Promise<boolean>(resolve => {
    asking.value?.(false)
    asking.value = resolve
  })
  asking.value = undefined
  if (isConfirmed) return send()
  const message = 'This shows a secret or destroys something, and takes your password.'
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}

/** The dialog in which the password is typed. */
export function PasswordPrompt() {
  const dialog = useRef<HTMLDialogElement>(null)
  const answer = asking.value
  const { value } = session
  useEffect(() => {
    if (answer) dialog.current?.showModal()
    else dialog.current?.close()
  }, [answer])

  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm" onClose={() => answer?.(false)}>
      {answer && (
        <>
          <h2 id="confirm">Is it you?</h2>
          <p>Type your password once more. It is good for ten minutes.</p>
          <Form
            action="Go on"
            send={value => request('POST', '/api/session/verify', { password: value('password') })}
            onDone={() => answer(true)}
          >
            {/* Tells password managers whose password it is. */}
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
