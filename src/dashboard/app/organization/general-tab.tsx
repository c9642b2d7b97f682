import { useLocation } from 'preact-iso'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { PATHS } from '../paths.ts'
import { loadSession } from '../session.ts'
import { request } from '../request.ts'
import { CreateOrganization } from './create-organization.tsx'
import { Projects } from './projects.tsx'
import { Section } from '../components/item.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'

/** The membership of the account in the organization, as all tabs take it. */
export interface TabOptions {
  account: Account
  own: Account['organizations'][number]
}

/** The projects of an organization, its name and its end. */
export function GeneralTab({ account, own }: TabOptions) {
  const { route } = useLocation()
  const isOwner = own.role === 'owner'
  const place = { organizationId: own.id }

  async function goHome(message: string) {
    route(PATHS.account, true)
    await loadSession()
    showToast(message)
  }

  return (
    <>
      <Projects own={own} />
      {account.person.isOperator && (
        <Section id="another" title="New organization">
          <CreateOrganization />
        </Section>
      )}
      <section class="section" aria-labelledby="end">
        <h2 id="end">{isOwner ? 'Rename, leave or delete' : 'Leave'}</h2>
        <div class="actions">
          {isOwner && <RenameOrganization organization={own.id} name={own.name} />}
          <ConfirmButton
            action="Leave"
            title="Leave"
            name={own.name}
            lead="You lose access until somebody invites you again. The last owner cannot leave."
            yes="Leave"
            isQuiet
            send={() => request('DELETE /api/organizations/:organizationId/membership', place)}
            onDone={() => void goHome(`You left ${own.name}.`)}
          />
          {isOwner && (
            <ConfirmButton
              action="Delete organization"
              title="Delete"
              name={own.name}
              lead="All its projects, events, API keys and webhooks are deleted for all members. This cannot be undone."
              yes="Delete permanently"
              send={() => request('DELETE /api/organizations/:organizationId', place)}
              onDone={() => void goHome(`${own.name} deleted.`)}
            />
          )}
        </div>
      </section>
    </>
  )
}

/** Renames an organization. */
function RenameOrganization({ organization, name }: { organization: string; name: string }) {
  return (
    <FormButton
      action="Rename"
      submit="Save"
      send={value =>
        request('PATCH /api/organizations/:organizationId', {
          organizationId: organization,
          name: value('name'),
        })
      }
      onDone={() => void loadSession()}
    >
      <Field name="name" label="Name" value={name} />
    </FormButton>
  )
}
