import { MIN_PASSWORD_LENGTH } from '../../../passwords/length.ts'
import { Field } from './form.tsx'
import { t } from '../locales/translate.tsx'

/** The field for a new password, with its minimum length as the hint. */
export function NewPasswordField({ name = 'password', label = t('common.password') }) {
  return (
    <Field
      name={name}
      label={label}
      type="password"
      autocomplete="new-password"
      hint={t('common.passwordHint', { length: MIN_PASSWORD_LENGTH })}
    />
  )
}
