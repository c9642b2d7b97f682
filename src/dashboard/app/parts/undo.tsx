import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Answer } from '../request.ts'

const UNDO_MS = 5_000
const SAID_MS = 6_000

interface Deed {
  said: string
  /** Takes it back; undefined where there is nothing to take back. */
  undo?: (() => Promise<Answer<unknown>>) | undefined
  onUndone?: (() => void) | undefined
}

const deed = signal<Deed | undefined>(undefined)

/** Says what has been done and, for five seconds, offers to undo it. The page must have an `Undo` in it. */
export function tell(done: Deed): void {
  deed.value = done
}

/** The place where it is said. */
export function Undo() {
  const done = deed.value
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => (deed.value = undefined), done.undo ? UNDO_MS : SAID_MS)
    return () => clearTimeout(timer)
  }, [done])

  async function undo() {
    if (!done?.undo) return
    deed.value = undefined
    const answer = await done.undo()
    if (answer.ok) done.onUndone?.()
    deed.value = { said: answer.ok ? 'It is back.' : answer.failure.message }
  }

  return (
    <div class="undo" role="status">
      {done && (
        <p>
          <span>{done.said}</span>
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
