import { Field, Form } from '../parts/form.tsx'
import { Reveal } from '../parts/reveal.tsx'
import { loadSession } from '../session.ts'
import { renameOrganization } from './calls.ts'

/** The way to another name of an organization. */
export function Rename({ organization, name }: { organization: string; name: string }) {
  return (
    <Reveal action="Rename">
      {close => (
        <Form
          action="Save"
          send={value => renameOrganization(organization, value('name'))}
          onDone={() => {
            close()
            void loadSession()
          }}
        >
          <Field name="name" label="Name" autocomplete="off" value={name} />
        </Form>
      )}
    </Reveal>
  )
}
