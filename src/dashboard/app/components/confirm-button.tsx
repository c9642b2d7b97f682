import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import type { Result } from '../request.ts'
import { withVerification } from './verification.ts'
import { QuietButton } from './buttons.tsx'
import { useAction } from './use-action.ts'

interface ConfirmButtonOptions<Data> {
  /** The text of the button that opens the dialog. */
  action: ComponentChildren
  /** The question, or its part before the name of what it is about. */
  title: string
  name?: string
  /** The consequences. */
  lead: ComponentChildren
  /** The text of the button that confirms. */
  yes: string
  /** True if the button is one of several in a row. */
  isQuiet?: boolean
  send(): Promise<Result<Data>>
  onDone(data: Data): void
}

/** A button that asks for confirmation, and for the password if the server requires it. */
export function ConfirmButton<Data>(options: ConfirmButtonOptions<Data>) {
  const { action, title, name, lead, yes, isQuiet = false, send, onDone } = options
  const dialog = useRef<HTMLDialogElement>(null)
  const { act, isBusy, failure } = useAction()

  async function confirm() {
    const menu = dialog.current?.closest<HTMLElement>('.menu')
    dialog.current?.close()
    const result = await act(() => withVerification(send))
    if (!result?.ok) return
    menu?.hidePopover()
    onDone(result.data)
  }

  return (
    <>
      <button
        type="button"
        class={isQuiet ? 'quiet-button' : 'button button-danger'}
        aria-disabled={isBusy}
        onClick={() => dialog.current?.showModal()}
      >
        {action}
      </button>
      {failure && (
        <p role="alert" class="notice">
          {failure.message}
        </p>
      )}
      <dialog ref={dialog} class="dialog" aria-label={yes}>
        <h2>
          {title}
          {name !== undefined && (
            <>
              {' '}
              <bdi>{name}</bdi>?
            </>
          )}
        </h2>
        <p>{lead}</p>
        <button type="button" class="button button-danger" onClick={confirm}>
          {yes}
        </button>
        <QuietButton onClick={() => dialog.current?.close()}>Cancel</QuietButton>
      </dialog>
    </>
  )
}
