import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { FieldIssues, useIssues } from './form.tsx'

interface SelectOption {
  value: string
  text: string
  /** True if a user chose the text, whose direction may differ from that of the page. */
  isUserText?: boolean
}

interface SelectOptions {
  name: string
  label: string
  /** The values to send, with their labels. */
  options: readonly SelectOption[]
  value?: string | undefined
  hint?: string
  onChange?(value: string): void
}

/** A labelled select input. */
export function Select({ name, label, options, value, hint, onChange }: SelectOptions) {
  const id = useId()
  const issues = useIssues(name)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <div class="input">
        <select
          id={id}
          name={name}
          aria-invalid={issues.length > 0}
          aria-describedby={hint && `${id}-hint`}
          onChange={({ currentTarget }) => onChange?.(currentTarget.value)}
        >
          {options.map(option => (
            <option
              key={option.value}
              value={option.value}
              dir={option.isUserText ? 'auto' : undefined}
              selected={option.value === value}
            >
              {option.text}
            </option>
          ))}
        </select>
      </div>
      <FieldIssues issues={issues} />
    </div>
  )
}

interface CheckboxOptions {
  name: string
  /** The value to send; undefined for a single checkbox. */
  value?: string
  isOn?: boolean
  onChange?(isOn: boolean): void
  children: ComponentChildren
}

/** A labelled checkbox. */
export function Checkbox({
  name,
  value = 'on',
  isOn = false,
  onChange,
  children,
}: CheckboxOptions) {
  return (
    <label class="checkbox">
      <input
        type="checkbox"
        name={name}
        value={value}
        defaultChecked={isOn}
        onChange={({ currentTarget }) => onChange?.(currentTarget.checked)}
      />
      <span>{children}</span>
    </label>
  )
}

interface FieldsetOptions {
  legend: string
  /** The field name in the server's errors. */
  name?: string
  children: ComponentChildren
}

/** A group of inputs with a legend. */
export function Fieldset({ legend, name = '', children }: FieldsetOptions) {
  const issues = useIssues(name)
  return (
    <fieldset class="checkbox-group" name={name || undefined}>
      <legend>{legend}</legend>
      {children}
      <FieldIssues issues={issues} />
    </fieldset>
  )
}

interface TextAreaOptions {
  name: string
  label: string
  value?: string | undefined
}

/** A labelled text input with several lines. */
export function TextArea({ name, label, value }: TextAreaOptions) {
  const id = useId()
  const issues = useIssues(name)
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="input">
        <textarea
          id={id}
          name={name}
          rows={3}
          aria-invalid={issues.length > 0}
          aria-describedby={issues.length > 0 ? `${id}-issue` : undefined}
          defaultValue={value}
        />
      </div>
      <FieldIssues id={`${id}-issue`} issues={issues} />
    </div>
  )
}
