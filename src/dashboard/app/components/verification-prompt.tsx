import { useLayoutEffect, useRef } from 'preact/hooks'
import { session } from '../session.ts'
import { QuietButton } from './buttons.tsx'
import { waiting } from './verification.ts'
import { Ways } from './verification-ways.tsx'

/** The dialog that asks the account to confirm that it is present. */
export function VerificationPrompt() {
  const dialog = useRef<HTMLDialogElement>(null)
  const { value } = waiting
  const account = session.value.kind === 'signed_in' ? session.value.account : undefined
  // A code can be followed by a password. The dialog then closes and opens at once, and the event
  // of the closing comes when it is open again.
  useLayoutEffect(() => {
    if (value) {
      dialog.current?.showModal()
      // Its form could not take the focus while the dialog was closed.
      dialog.current?.querySelector<HTMLElement>('input:not([hidden])')?.focus()
    } else dialog.current?.close()
  }, [value])

  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="confirm"
      onClose={() => dialog.current?.open || value?.respond(false)}
    >
      {value && account && (
        <>
          <h2 id="confirm">Confirm that it is you</h2>
          <Ways
            account={account}
            needsFactor={value.needsFactor}
            onDone={() => value.respond(true)}
          />
          <QuietButton onClick={() => dialog.current?.close()}>Cancel</QuietButton>
        </>
      )}
    </dialog>
  )
}
