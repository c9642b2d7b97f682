import type { ComponentChildren } from 'preact'
import type { Dispatch, StateUpdater } from 'preact/hooks'
import type { Result } from '../request.ts'
import { withVerification } from './verification.ts'
import { showResult } from './toast.tsx'
import { useAction } from './use-action.ts'

interface ActionButtonOptions<Data> {
  /** The text of the button. */
  action: string
  /** True if this is the main action of the page. */
  isPrimary?: boolean
  send(): Promise<Result<Data>>
  onDone(data: Data): void
}

/** A button that sends a request and shows a toast if it fails. */
export function ActionButton<Data>(options: ActionButtonOptions<Data>) {
  const { action, isPrimary = false, send, onDone } = options
  const { act, isBusy } = useAction()

  async function press() {
    const result = await act(() => withVerification(send))
    if (result && showResult(result)) onDone(result.data)
  }

  return (
    <button
      type="button"
      class={isPrimary ? 'button' : 'quiet-button'}
      aria-disabled={isBusy}
      onClick={press}
    >
      {isBusy ? `${action}…` : action}
    </button>
  )
}

interface DisclosureButtonOptions<Name extends string> {
  name: NoInfer<Name>
  /** The name of the section that is open, if any. */
  open: Name | undefined
  onOpen: Dispatch<StateUpdater<Name | undefined>>
  children: ComponentChildren
}

/** A button that opens and closes a section below it. */
export function DisclosureButton<Name extends string>(options: DisclosureButtonOptions<Name>) {
  const { name, open, onOpen, children } = options
  return (
    <button
      type="button"
      class="quiet-button"
      aria-expanded={open === name}
      onClick={() => onOpen(open === name ? undefined : name)}
    >
      {children}
    </button>
  )
}
