import { Check, Choices } from '../parts/fields.tsx'
import { confirmed } from '../parts/confirm.tsx'
import { Field, Form } from '../parts/form.tsx'
import { createKey, type NewKey } from './calls.ts'
import { SCOPE_NAMES, SCOPES } from './scopes.ts'

/** The form that makes a key. */
export function MakeKey({ project, onMade }: { project: string; onMade(key: NewKey): void }) {
  return (
    <Form
      action="Make the key"
      send={value =>
        confirmed(() =>
          createKey(project, {
            name: value('name'),
            scopes: SCOPE_NAMES.filter(scope => value(scope)),
            limit: Number(value('limit')),
            expiresAt: toMoment(value('expiresAt')),
          }),
        )
      }
      onDone={onMade}
    >
      <Field
        name="name"
        label="Name"
        autocomplete="off"
        hint="Who uses it, like the name of an application."
      />
      <Choices legend="It may" name="scopes">
        {SCOPE_NAMES.map(scope => (
          <Check key={scope} name={scope} isOn>
            {SCOPES[scope]}
          </Check>
        ))}
      </Choices>
      <Limit value={100} />
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

export function Limit({ value }: { value: number }) {
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
