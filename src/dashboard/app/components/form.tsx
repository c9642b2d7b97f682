import { createContext, type ComponentChildren } from 'preact'
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Result, Failure } from '../request.ts'
import { toReaderTimes } from '../time-texts.ts'
import { withVerification } from './verification.ts'
import { QuietButton } from './buttons.tsx'
import { useAction } from './use-action.ts'

interface FormOptions<Data> {
  /** The text of the submit button. */
  action: string
  /** Sends the form; `value` returns the content of a field. */
  send(value: (name: string) => string): Promise<Result<Data>>
  onDone(data: Data): void
  children: ComponentChildren
}

const Issues = createContext<Failure | undefined>(undefined)
/** Closes the inline form that a form is in. */
export const Cancel = createContext<(() => void) | undefined>(undefined)

/**
 * A form that shows the server's errors at its fields and focuses the first invalid one. It asks
 * for a verification if the server requires it.
 */
export function Form<Data>({ action, send, onDone, children }: FormOptions<Data>) {
  const form = useRef<HTMLFormElement>(null)
  const { act, isBusy, failure } = useAction()
  const waitS = useCountdown(failure)
  const cancel = useContext(Cancel)

  // A layout effect, so that it never takes the focus from a field that the reader has chosen.
  useLayoutEffect(() => {
    form.current
      ?.querySelector<HTMLElement>('input:not([hidden]), select, textarea')
      ?.focus({ preventScroll: true })
    // It took the place of a button, which may have been at the end of the window.
    form.current?.closest('.inline-form')?.scrollIntoView({ block: 'nearest' })
  }, [])
  useEffect(() => {
    if (failure) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [failure])

  async function submit(event: SubmitEvent) {
    event.preventDefault()
    if (!form.current || waitS > 0) return
    const values = new FormData(form.current)
    const result = await act(() =>
      withVerification(() => send(name => String(values.get(name) ?? ''))),
    )
    if (!result?.ok) return
    form.current?.removeAttribute('data-changed')
    onDone(result.data)
  }

  return (
    <Issues.Provider value={failure}>
      {/* Only the server validates, so that there is one set of rules. */}
      <form ref={form} class="form" noValidate onSubmit={submit}>
        {children}
        <div class="form-end">
          <div role="alert">{failure && <Notice failure={failure} form={form.current} />}</div>
          <button class="button" type="submit" aria-disabled={isBusy || waitS > 0}>
            {waitS > 0 ? `Try again in ${waitS} s` : isBusy ? `${action}…` : action}
          </button>
          {cancel && <QuietButton onClick={cancel}>Cancel</QuietButton>}
        </div>
      </form>
    </Issues.Provider>
  )
}

/** Shows what the server found at fields before their form was sent. */
export function Found({
  failure,
  children,
}: {
  failure: Failure | undefined
  children: ComponentChildren
}) {
  return <Issues.Provider value={useContext(Issues) ?? failure}>{children}</Issues.Provider>
}

function useIssues(name: string): Failure['details'] {
  return useContext(Issues)?.details.filter(({ path }) => path[0] === name) ?? []
}

interface LabelledOptions {
  name: string
  label: string
  hint?: string | false | undefined
  /** The input with these attributes. */
  children(attributes: {
    id: string
    name: string
    'aria-invalid': boolean
    'aria-describedby': string | undefined
  }): ComponentChildren
}

/** An input with its label, its hint and its errors. */
export function Labelled({ name, label, hint, children }: LabelledOptions) {
  const id = useId()
  const isInvalid = useIssues(name).length > 0
  const described = [hint && `${id}-hint`, isInvalid && `${id}-issue`].filter(Boolean).join(' ')
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <div class="input">
        {children({
          id,
          name,
          'aria-invalid': isInvalid,
          'aria-describedby': described || undefined,
        })}
      </div>
      <FieldIssues id={`${id}-issue`} name={name} />
    </div>
  )
}

/** The server's errors for a field. */
export function FieldIssues({ name, id }: { name: string; id?: string }) {
  const issues = useIssues(name)
  if (issues.length === 0) return null
  return (
    <p class="issue" id={id}>
      {issues.map(({ message }) => toReaderTimes(message)).join(' · ')}
    </p>
  )
}

interface FieldOptions {
  name: string
  label: string
  autocomplete?: string
  type?: 'text' | 'email' | 'password' | 'url' | 'time' | 'date' | 'datetime-local'
  /** True for a text of digits, which a phone enters with their keys. */
  isNumber?: boolean
  isOptional?: boolean
  hint?: string | false | undefined
  value?: string | undefined
}

/** A labelled input with its hint and errors. A password can be shown. */
export function Field(options: FieldOptions) {
  const {
    name,
    label,
    autocomplete = 'off',
    type = 'text',
    isNumber = false,
    isOptional = false,
    hint,
    value,
  } = options
  const [isShown, setShown] = useState(false)
  return (
    <Labelled name={name} label={label} hint={hint}>
      {attributes => (
        <>
          <input
            {...attributes}
            // Preact types each input type separately. All of these take the same attributes.
            type={(isShown ? 'text' : type) as 'text'}
            defaultValue={value}
            autocomplete={autocomplete}
            inputmode={isNumber ? 'numeric' : undefined}
            autocapitalize={type === 'text' ? undefined : 'none'}
            spellcheck={false}
            aria-required={!isOptional}
          />
          {type === 'password' && (
            <QuietButton
              aria-pressed={isShown}
              aria-label={`Show ${label}`}
              onClick={() => setShown(!isShown)}
            >
              {isShown ? 'Hide' : 'Show'}
            </QuietButton>
          )}
        </>
      )}
    </Labelled>
  )
}

function Notice({ failure, form }: { failure: Failure; form: HTMLFormElement | null }) {
  // Errors without a visible field, such as for the secret of a link.
  const otherIssues = failure.details.filter(
    ({ path: [name = ''] }) => !form?.elements.namedItem(name),
  )
  const isAtFields = otherIssues.length === 0 && failure.details.length > 0
  return (
    // The fields show their errors. Screen readers also hear that there are some.
    <p class={isAtFields ? 'visually-hidden' : 'notice'}>
      {otherIssues.length > 0
        ? otherIssues.map(({ path, message }) => [...path, message].join(': ')).join('. ')
        : failure.message}
    </p>
  )
}

/** Counts down the seconds that the server asked to wait. */
function useCountdown(failure: Failure | undefined): number {
  const [leftS, setLeftS] = useState(0)
  useEffect(() => {
    const untilMs = Date.now() + (failure?.retryAfterS ?? 0) * 1000
    const tick = () => {
      const left = Math.max(0, Math.ceil((untilMs - Date.now()) / 1000))
      setLeftS(left)
      if (left === 0) clearInterval(timer)
    }
    const timer = setInterval(tick, 250)
    tick()
    return () => clearInterval(timer)
  }, [failure])
  return leftS
}
