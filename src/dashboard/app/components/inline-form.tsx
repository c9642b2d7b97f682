import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

interface InlineFormOptions {
  /** What the button says that leads to it. */
  action: string
  /** What the button says to whoever cannot see what it stands beside. */
  label?: string | undefined
  /** What is there instead of the button until `close` is called. */
  children(close: () => void): ComponentChildren
}

/** A button that gives way to a form, and is back when that is done or given up. */
export function InlineForm({ action, label, children }: InlineFormOptions) {
  const button = useRef<HTMLButtonElement>(null)
  const [state, setState] = useState<'untouched' | 'open' | 'closed'>('untouched')
  const close = () => setState('closed')
  useEffect(() => {
    if (state === 'closed') button.current?.focus()
  }, [state])
  if (state !== 'open') {
    return (
      <button
        ref={button}
        type="button"
        class="quiet-button"
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
      <button type="button" class="quiet-button" onClick={close}>
        Cancel
      </button>
    </div>
  )
}
