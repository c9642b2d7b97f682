import { useLocation } from 'preact-iso'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { t } from '../locales/translate.tsx'
import { toOrganizationPath } from '../paths.ts'
import { loadSession } from '../session.ts'
import { createOrganization } from './api.ts'

/** Creates an organization. Only the operator can do this. */
export function CreateOrganization() {
  const { route } = useLocation()
  return (
    <InlineForm action={t('account.createOrganization')}>
      {close => (
        <Form
          action={t('words.create')}
          send={value => createOrganization(value('name'))}
          onDone={async ({ id }) => {
            close()
            await loadSession()
            route(toOrganizationPath(id))
          }}
        >
          <Field
            name="name"
            label={t('words.name')}
            autocomplete="off"
            hint={t('account.organizationHint')}
          />
        </Form>
      )}
    </InlineForm>
  )
}
