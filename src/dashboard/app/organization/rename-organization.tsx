import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { loadSession } from '../session.ts'
import { request } from '../request.ts'

/** Renames an organization. */
export function RenameOrganization({ organization, name }: { organization: string; name: string }) {
  return (
    <InlineForm action="Rename">
      {close => (
        <Form
          action="Save"
          send={value =>
            request('PATCH /api/organizations/:organizationId', {
              organizationId: organization,
              name: value('name'),
            })
          }
          onDone={() => {
            close()
            void loadSession()
          }}
        >
          <Field name="name" label="Name" value={name} />
        </Form>
      )}
    </InlineForm>
  )
}
