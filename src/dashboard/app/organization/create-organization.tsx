import { useLocation } from 'preact-iso'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { toOrganizationPath } from '../paths.ts'
import { loadSession } from '../session.ts'
import { request } from '../request.ts'

/** Creates an organization. Only the operator can do this. */
export function CreateOrganization() {
  const { route } = useLocation()
  return (
    <FormButton
      action="Create an organization"
      submit="Create"
      send={value => request('POST /api/organizations', { name: value('name') })}
      onDone={async ({ id }) => {
        await loadSession()
        route(toOrganizationPath(id))
      }}
    >
      <Field
        name="name"
        label="Name"
        hint="It has its own projects and members. You become its owner."
      />
    </FormButton>
  )
}
