import { useRef } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { pickChanges } from '../changes.ts'
import { Item, Section } from '../components/item.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { FormButton, InlineForm } from '../components/inline-form.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { toFeedPath } from '../paths.ts'
import { isAtLeast, loadSession } from '../session.ts'
import type { ProjectChange } from '../../../access/organizations/schema.ts'
import { request } from '../request.ts'
import { parseRetentionDays } from './retention-days.ts'

type Membership = Account['organizations'][number]

/** The projects of an organization, with the actions of its admins. */
export function Projects({ own }: { own: Membership }) {
  const mayEdit = isAtLeast(own.role, 'admin')
  return (
    <Section id="projects" title="Projects">
      {mayEdit && (
        <div class="primary-action">
          <FormButton
            isPrimary
            action="Create a project"
            submit="Create"
            send={value =>
              request('POST /api/organizations/:organizationId/projects', {
                organizationId: own.id,
                name: value('name'),
              })
            }
            onDone={() => void loadSession()}
          >
            <Field name="name" label="Name" />
          </FormButton>
        </div>
      )}
      {own.projects.length === 0 && <p class="note">No projects yet</p>}
      <ul class="items">
        {own.projects.map(({ id, name }) => (
          <Item
            key={id}
            title={
              <a href={toFeedPath(id)}>
                <bdi>{name}</bdi>
              </a>
            }
          >
            {mayEdit && (
              <InlineForm action="Settings" label={`Settings of ${name}`}>
                {close => <Settings own={own} project={id} onDone={close} />}
              </InlineForm>
            )}
          </Item>
        ))}
      </ul>
    </Section>
  )
}

function Settings({ own, project, onDone }: { own: Membership; project: string; onDone(): void }) {
  const place = { projectId: project }
  const query = useRoute('GET /api/projects/:projectId', place)
  // As it was when the form was opened.
  const before = useRef(query.data)
  const { name = '', keepDays = null } = (before.current ??= query.data) ?? {}
  return (
    <Loaded query={query}>
      {({ head }) => (
        <>
          <Form
            action="Save"
            send={value =>
              request('PATCH /api/projects/:projectId', {
                ...place,
                ...pickChanges<ProjectChange>(
                  { name, keepDays },
                  {
                    name: value('name'),
                    keepDays: parseRetentionDays(value('keepDays')) as number | null,
                  },
                ),
              })
            }
            onDone={() => {
              onDone()
              void loadSession()
            }}
          >
            <Field name="name" label="Name" value={name} />
            <Field
              name="keepDays"
              label="Retention in days"
              value={String(keepDays ?? '')}
              hint="Older events are deleted permanently. Leave empty to keep events forever."
              isNumber
              isOptional
            />
          </Form>
          {own.role === 'owner' && (
            <ConfirmButton
              action="Delete this project"
              title="Delete"
              name={name}
              lead={`Its ${head.toLocaleString()} events, its API keys and its webhooks are deleted for all members. This cannot be undone.`}
              yes="Delete permanently"
              send={() => request('DELETE /api/projects/:projectId', place)}
              onDone={() => {
                showToast(`${name} deleted.`)
                void loadSession()
              }}
            />
          )}
        </>
      )}
    </Loaded>
  )
}
