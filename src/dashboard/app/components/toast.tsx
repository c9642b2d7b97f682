import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Result } from '../request.ts'

const UNDO_MS = 5_000
const MESSAGE_MS = 6_000

interface ToastOptions {
  message: string
  /** Reverts the action; undefined if it cannot be undone. */
  undo?: (() => Promise<Result<unknown>>) | undefined
  onUndone?: (() => void) | undefined
}

const toast = signal<ToastOptions | undefined>(undefined)

/** Shows a message, with an Undo button for five seconds if there is `undo`. Needs a `Toast`. */
export function showToast(shown: string | ToastOptions): void {
  toast.value = typeof shown === 'string' ? { message: shown } : shown
}

/** Shows why a request failed, or else a message if there is one. Returns whether it succeeded. */
export function showResult<Data>(
  result: Result<Data>,
  done?: string | ToastOptions,
): result is { ok: true; data: Data } {
  if (!result.ok) showToast(result.failure.message)
  else if (done !== undefined) showToast(done)
  return result.ok
}

/** The region that shows toasts. Each layout has one. */
export function Toast() {
  const current = toast.value
  useEffect(() => {
    if (!current) return
    const timer = setTimeout(() => (toast.value = undefined), current.undo ? UNDO_MS : MESSAGE_MS)
    return () => clearTimeout(timer)
  }, [current])

  async function undo() {
    if (!current?.undo) return
    toast.value = undefined
    if (showResult(await current.undo(), 'Restored.')) current.onUndone?.()
  }

  return (
    <div class="toast" role="status">
      {current && (
        <p>
          <span>{current.message}</span>
          {current.undo && (
            <button type="button" onClick={undo}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  )
}
