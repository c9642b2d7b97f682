import { Checkbox, Fieldset } from '../components/fields.tsx'
import { withPasswordPrompt } from '../components/password-prompt.tsx'
import { Field, Form } from '../components/form.tsx'
import { createKey, type NewKey } from './api.ts'
import { SCOPE_NAMES, SCOPE_LABELS } from './scopes.ts'

/** The form that makes a key. */
export function CreateKeyForm({
  project,
  onCreated,
}: {
  project: string
  onCreated(key: NewKey): void
}) {
  return (
    <Form
      action="Make the key"
      send={value =>
        withPasswordPrompt(() =>
          createKey(project, {
            name: value('name'),
            scopes: SCOPE_NAMES.filter(scope => value(scope)),
            limit: Number(value('limit')),
            expiresAt: toMoment(value('expiresAt')),
          }),
        )
      }
      onDone={onCreated}
    >
      <Field
        name="name"
        label="Name"
        autocomplete="off"
        hint="Who uses it, like the name of an application."
      />
      <Fieldset legend="It may" name="scopes">
        {SCOPE_NAMES.map(scope => (
          <Checkbox key={scope} name={scope} isOn>
            {SCOPE_LABELS[scope]}
          </Checkbox>
        ))}
      </Fieldset>
      <LimitField value={100} />
      <Field
        name="expiresAt"
        label="Expires on"
        type="date"
        autocomplete="off"
        isOptional
        hint="When this day begins. Without a day it does not expire."
      />
    </Form>
  )
}

export function LimitField({ value }: { value: number }) {
  return (
    <Field
      name="limit"
      label="Requests per minute"
      type="number"
      autocomplete="off"
      value={String(value)}
    />
  )
}

/** When a day begins for the reader. */
function toMoment(day: string): string | null {
  return day === '' ? null : new Date(`${day}T00:00`).toISOString()
}
