import { Checkbox, Fieldset } from '../components/fields.tsx'
import { withVerification } from '../components/verification-prompt.tsx'
import { Field, Form } from '../components/form.tsx'
import { createKey, type NewKey } from './api.ts'
import { isDefault, SCOPE_NAMES } from './scopes.ts'
import { t } from '../locales/translate.tsx'

/** The form that creates an API key. */
export function CreateKeyForm({
  project,
  onCreated,
}: {
  project: string
  onCreated(key: NewKey): void
}) {
  return (
    <Form
      action={t('keys.createKey')}
      send={value =>
        withVerification(() =>
          createKey(project, {
            name: value('name'),
            scopes: SCOPE_NAMES.filter(scope => value(scope)),
            limit: Number(value('limit')),
            expiresAt: toStartOfDay(value('expiresAt')),
          }),
        )
      }
      onDone={onCreated}
    >
      <Field name="name" label={t('words.name')} autocomplete="off" hint={t('keys.nameHint')} />
      <Fieldset legend={t('keys.permissions')} name="scopes">
        {SCOPE_NAMES.map(scope => (
          <Checkbox key={scope} name={scope} isOn={isDefault(scope)}>
            {t(`keys.scope.${scope}`)}
          </Checkbox>
        ))}
      </Fieldset>
      <LimitField value={100} />
      <Field
        name="expiresAt"
        label={t('keys.expiresOn')}
        type="date"
        autocomplete="off"
        isOptional
        hint={t('keys.expiresHint')}
      />
    </Form>
  )
}

export function LimitField({ value }: { value: number }) {
  return (
    <Field
      name="limit"
      label={t('keys.limit')}
      type="number"
      autocomplete="off"
      value={String(value)}
    />
  )
}

/** The start of a day in local time, or null. */
function toStartOfDay(day: string): string | null {
  return day === '' ? null : new Date(`${day}T00:00`).toISOString()
}
