import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { QuietButton } from './quiet-button.tsx'

interface InlineFormOptions {
  /** The text of the button. */
  action: string
  /** The accessible name of the button, if its text is not enough. */
  label?: string | undefined
  /** True if this is the main action of the page. */
  isPrimary?: boolean
  /** The form that replaces the button until `close` is called. */
  children(close: () => void): ComponentChildren
}

/** A button that is replaced by a form until the form is submitted or cancelled. */
export function InlineForm({ action, label, isPrimary = false, children }: InlineFormOptions) {
  const button = useRef<HTMLButtonElement>(null)
  const [state, setState] = useState<'untouched' | 'open' | 'closed'>('untouched')
  const close = () => setState('closed')
  useLayoutEffect(() => {
    if (state === 'closed') button.current?.focus()
  }, [state])
  if (state !== 'open') {
    return (
      <button
        ref={button}
        type="button"
        class={isPrimary ? 'button' : 'quiet-button'}
        aria-label={label}
        onClick={() => setState('open')}
      >
        {action}
      </button>
    )
  }
  return (
    <div class="inline-form">
      {children(close)}
      <QuietButton onClick={close}>Cancel</QuietButton>
    </div>
  )
}
