import { useLocation } from 'preact-iso'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { toOrganizationPath } from '../paths.ts'
import { loadSession } from '../session.ts'
import { createOrganization } from './api.ts'

/** The way to one more organization, for the operator. */
export function CreateOrganization() {
  const { route } = useLocation()
  return (
    <InlineForm action="Create an organization">
      {close => (
        <Form
          action="Create"
          send={value => createOrganization(value('name'))}
          onDone={async ({ id }) => {
            close()
            await loadSession()
            route(toOrganizationPath(id))
          }}
        >
          <Field
            name="name"
            label="Name"
            autocomplete="off"
            hint="It has its own projects and members, and you own it."
          />
        </Form>
      )}
    </InlineForm>
  )
}
