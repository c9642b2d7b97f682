import { useLocation } from 'preact-iso'
import { Field, Form } from '../parts/form.tsx'
import { Reveal } from '../parts/reveal.tsx'
import { toOrganizationPath } from '../paths.ts'
import { loadSession } from '../session.ts'
import { createOrganization } from './calls.ts'

/** The way to one more organization, for the operator. */
export function NewOrganization() {
  const { route } = useLocation()
  return (
    <Reveal action="Create an organization">
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
    </Reveal>
  )
}
