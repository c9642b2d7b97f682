import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Result } from '../request.ts'
import { Cancel, Form } from './form.tsx'
import { QuietButton } from './buttons.tsx'

interface ButtonOptions {
  /** The text of the button. */
  action: string
  /** The accessible name of the button, if its text is not enough. */
  label?: string | undefined
  /** True if this is the main action of the page. */
  isPrimary?: boolean
}

interface InlineFormOptions extends ButtonOptions {
  /** The form that replaces the button until `close` is called. */
  children(close: () => void): ComponentChildren
}

/** A button that is replaced by a form until the form is submitted or cancelled. */
export function InlineForm({ action, label, isPrimary = false, children }: InlineFormOptions) {
  const button = useRef<HTMLButtonElement>(null)
  const [state, setState] = useState<'untouched' | 'open' | 'closed'>('untouched')
  const close = () => setState('closed')
  useLayoutEffect(() => {
    // A new secret may have the focus already.
    const isLost = document.activeElement === document.body
    if (state === 'closed' && isLost) button.current?.focus()
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
      <Cancel.Provider value={close}>{children(close)}</Cancel.Provider>
      {/* Shown until the form is there, which has its own. */}
      <QuietButton onClick={close}>Cancel</QuietButton>
    </div>
  )
}

interface FormButtonOptions<Data> extends ButtonOptions {
  /** The text of the submit button. */
  submit: string
  /** Sends the form; `value` returns the content of a field. */
  send(value: (name: string) => string): Promise<Result<Data>>
  /** Called when the form has closed. */
  onDone(data: Data): void
  /** The fields of the form. */
  children: ComponentChildren
}

/** A button that is replaced by a form with a few fields. */
export function FormButton<Data>(options: FormButtonOptions<Data>) {
  const { submit, send, onDone, children, ...button } = options
  return (
    <InlineForm {...button}>
      {close => (
        <Form
          action={submit}
          send={send}
          onDone={data => {
            close()
            onDone(data)
          }}
        >
          {children}
        </Form>
      )}
    </InlineForm>
  )
}
