import type { ComponentChildren } from 'preact'
import { useState, type Dispatch, type StateUpdater } from 'preact/hooks'
import type { Answer } from '../request.ts'
import { confirmed } from './confirm.tsx'
import { tell } from './undo.tsx'

interface ActOptions<Data> {
  /** What the button says. */
  action: string
  send(): Promise<Answer<Data>>
  onDone(data: Data): void
}

/** A button that does something at once, and says so where it fails. */
export function Act<Data>({ action, send, onDone }: ActOptions<Data>) {
  const [isBusy, setBusy] = useState(false)

  async function act() {
    if (isBusy) return
    setBusy(true)
    const answer = await confirmed(send)
    setBusy(false)
    if (answer.ok) onDone(answer.data)
    else tell({ said: answer.failure.message })
  }

  return (
    <button type="button" class="quiet-button" aria-disabled={isBusy} onClick={act}>
      {isBusy ? `${action} …` : action}
    </button>
  )
}

interface UnfoldOptions<Name extends string> {
  name: NoInfer<Name>
  /** Which of several is open. */
  open: Name | undefined
  onOpen: Dispatch<StateUpdater<Name | undefined>>
  /** Whether it is what one comes to the page for. */
  isMain?: boolean
  children: ComponentChildren
}

/** A button that opens something below and closes it again. */
export function Unfold<Name extends string>(options: UnfoldOptions<Name>) {
  const { name, open, onOpen, isMain = false, children } = options
  return (
    <button
      type="button"
      class={isMain ? 'button' : 'quiet-button'}
      aria-expanded={open === name}
      onClick={() => onOpen(open === name ? undefined : name)}
    >
      {children}
    </button>
  )
}
