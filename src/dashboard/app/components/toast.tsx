import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Result } from '../request.ts'

const UNDO_MS = 5_000
const SAID_MS = 6_000

interface ToastOptions {
  message: string
  /** Takes it back; undefined where there is nothing to take back. */
  undo?: (() => Promise<Result<unknown>>) | undefined
  onUndone?: (() => void) | undefined
}

const deed = signal<ToastOptions | undefined>(undefined)

/** Says what has been done and, for five seconds, offers to undo it. The page must have an `Undo` in it. */
export function showToast(done: ToastOptions): void {
  deed.value = done
}

/** The place where it is said. */
export function Toast() {
  const done = deed.value
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => (deed.value = undefined), done.undo ? UNDO_MS : SAID_MS)
    return () => clearTimeout(timer)
  }, [done])

  async function undo() {
    if (!done?.undo) return
    deed.value = undefined
    const result = await done.undo()
    if (result.ok) done.onUndone?.()
    deed.value = { message: result.ok ? 'It is back.' : result.failure.message }
  }

  return (
    <div class="toast" role="status">
      {done && (
        <p>
          <span>{done.message}</span>
          {done.undo && (
            <button type="button" onClick={undo}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  )
}
