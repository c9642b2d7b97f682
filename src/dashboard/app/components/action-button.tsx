import { useAction } from './use-action.ts'
import type { Result } from '../request.ts'
import { withVerification } from './verification.ts'
import { showResult } from './toast.tsx'

interface ActionButtonOptions<Data> {
  /** The text of the button. */
  action: string
  /** The accessible name of the button, if its text is not enough. */
  label?: string
  /** True if this is the main action of the page. */
  isPrimary?: boolean
  send(): Promise<Result<Data>>
  onDone?(data: Data): void
}

/** A button that sends a request and shows a toast if it fails. */
export function ActionButton<Data>(options: ActionButtonOptions<Data>) {
  const { action, label, isPrimary = false, send, onDone } = options
  const { act, isBusy } = useAction()

  async function press({ currentTarget }: { currentTarget: HTMLElement }) {
    const menu = currentTarget.closest<HTMLElement>('.menu')
    const result = await act(() => withVerification(send))
    if (!result || !showResult(result)) return
    menu?.hidePopover()
    onDone?.(result.data)
  }

  return (
    <button
      type="button"
      class={isPrimary ? 'button' : 'quiet-button'}
      aria-label={label}
      aria-disabled={isBusy}
      onClick={press}
    >
      {isBusy ? `${action}…` : action}
    </button>
  )
}
