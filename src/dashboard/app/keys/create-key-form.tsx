import { Checkbox, Fieldset } from '../components/fields.tsx'
import { fromInputTime } from '../time.ts'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { isDefault, SCOPE_LABELS, SCOPE_NAMES } from './scopes.ts'

export type NewKey = Data<'POST /api/projects/:projectId/keys'>

/** The button and the form that create an API key. */
export function CreateKeyForm({
  project,
  onCreated,
}: {
  project: string
  onCreated(key: NewKey): void
}) {
  return (
    <FormButton
      isPrimary
      action="Create a key"
      submit="Create key"
      send={value =>
        request('POST /api/projects/:projectId/keys', {
          projectId: project,
          name: value('name') || 'API key',
          scopes: SCOPE_NAMES.filter(scope => value(scope)),
          limit: Number(value('limit')),
          expiresAt: toStartOfDay(value('expiresAt')),
        })
      }
      onDone={onCreated}
    >
      <Field
        name="name"
        label="Name"
        isOptional
        hint="The application that uses it, such as “Web shop”. Leave empty for “API key”."
      />
      <Fieldset legend="Permissions" name="scopes">
        {SCOPE_NAMES.map(scope => (
          <Checkbox key={scope} name={scope} isOn={isDefault(scope)}>
            {SCOPE_LABELS[scope]}
          </Checkbox>
        ))}
      </Fieldset>
      <LimitField value={100} />
      <Field
        name="expiresAt"
        label="Expires on"
        type="date"
        isOptional
        hint="It stops working when this day starts. Leave empty for a key that does not expire."
      />
    </FormButton>
  )
}

export function LimitField({ value }: { value: number }) {
  return <Field name="limit" label="Requests per minute" isNumber value={String(value)} />
}

/** The start of a day in local time, or null. Invalid input is returned as it is. */
function toStartOfDay(day: string): string | null {
  return day === '' ? null : fromInputTime(`${day}T00:00`)
}
