import { MIN_PASSWORD_LENGTH } from '../../../base/passwords/length.ts'
import { Field } from './form.tsx'

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
