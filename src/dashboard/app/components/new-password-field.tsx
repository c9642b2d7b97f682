import { MIN_PASSWORD_LENGTH } from '../../../passwords/length.ts'
import { Field } from './form.tsx'

/** The field for a password that somebody chooses, with the one rule that they should know beforehand. */
export function NewPasswordField({ name = 'password', label = 'Password' }) {
  return (
    <Field
      name={name}
      label={label}
      type="password"
      autocomplete="new-password"
      hint={`${MIN_PASSWORD_LENGTH} characters or more: a few words that nobody else would put together.`}
    />
  )
}
