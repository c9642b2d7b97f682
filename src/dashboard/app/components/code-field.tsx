import { Field } from './form.tsx'

/** The field for a code of an authenticator app. */
export function CodeField({ label, hint }: { label: string; hint?: string }) {
  return <Field name="code" label={label} autocomplete="one-time-code" hint={hint} />
}
