import type { ComponentChildren } from 'preact'
import { Field, FieldIssues, Labelled } from './form.tsx'
import { MIN_PASSWORD_LENGTH } from '../../../base/passwords/length.ts'

export interface SelectOption {
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
  /** The text of `value` if no option has it, as of an archived channel. Default: `value`. */
  valueText?: string | undefined
  hint?: string
  onChange?(value: string, select: HTMLSelectElement): void
}

/** A labelled select input. */
export function Select(props: SelectOptions) {
  const { name, label, options, value, valueText = value, hint, onChange } = props
  // The browser would choose another one.
  const isBeyond = value !== undefined && options.every(one => one.value !== value)
  const own = isBeyond ? [{ value, text: valueText!, isUserText: true }] : []
  return (
    <Labelled name={name} label={label} hint={hint}>
      {attributes => (
        <select
          {...attributes}
          onChange={({ currentTarget }) => onChange?.(currentTarget.value, currentTarget)}
        >
          {[...own, ...options].map(option => (
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
      )}
    </Labelled>
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
  return (
    <fieldset class="checkbox-group" name={name || undefined}>
      <legend>{legend}</legend>
      {children}
      <FieldIssues name={name} />
    </fieldset>
  )
}

interface TextAreaOptions {
  name: string
  label: string
  hint?: string
  value?: string | undefined
}

/** A labelled text input with several lines. */
export function TextArea({ name, label, hint, value }: TextAreaOptions) {
  return (
    <Labelled name={name} label={label} hint={hint}>
      {attributes => <textarea {...attributes} rows={3} defaultValue={value} />}
    </Labelled>
  )
}

/** A choice of how long an old key or secret stays valid, in hours. */
export function GracePeriod(options: Pick<SelectOptions, 'name' | 'label' | 'hint'>) {
  const periods = [
    { value: '0', text: 'Stop now' },
    { value: '1', text: 'For 1 hour' },
    { value: '24', text: 'For 1 day' },
    { value: '168', text: 'For 1 week' },
  ]
  return <Select {...options} options={periods} value="24" />
}

/** The field for a code of an authenticator app. */
export function CodeField({ label, hint }: { label: string; hint?: string }) {
  return <Field name="code" label={label} autocomplete="one-time-code" hint={hint} />
}

/** The field for a new password, with its minimum length as the hint. */
export function NewPasswordField({ name = 'password', label = 'Password' }) {
  return (
    <Field
      name={name}
      label={label}
      type="password"
      autocomplete="new-password"
      hint={`At least ${MIN_PASSWORD_LENGTH} characters. A few unrelated words work well.`}
    />
  )
}
