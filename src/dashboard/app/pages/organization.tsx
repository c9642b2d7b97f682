import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { AccountPageProps } from './props.ts'
import { AuditLog } from '../audit/audit-log.tsx'
import { deleteOrganization, leaveOrganization, readMembers } from '../organization/api.ts'
import { Invites } from '../organization/invites.tsx'
import { Members, type ShownLink } from '../organization/members.tsx'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { Projects } from '../organization/projects.tsx'
import { ResetLinks } from '../organization/reset-links.tsx'
import { RenameOrganization } from '../organization/rename-organization.tsx'
import { SecondFactorRequired } from '../organization/second-factor-required.tsx'
import { SecondFactorSetting } from '../organization/second-factor-setting.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { SignInRules } from '../openid/sign-in-rules.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { isAtLeast, loadSession } from '../session.ts'
import { Tokens } from '../tokens/tokens.tsx'
import { usePages } from '../components/use-pages.ts'

/** An organization: its projects, members, reset links, invitations and audit log. */
export default function OrganizationPage({ account, organization = '' }: AccountPageProps) {
  const own = account.organizations.find(({ id }) => id === organization)
  return (
    <SettingsLayout
      account={account}
      path={toOrganizationPath(organization)}
      organization={own?.id}
      title={own?.name ?? 'Organization'}
    >
      {own?.needsSecondFactor ? (
        <SecondFactorRequired account={account} name={own.name} />
      ) : own ? (
        <Inside key={own.id} account={account} own={own} />
      ) : (
        <div class="empty-state">
          <h1>Organization not found</h1>
          <p>It does not exist, or you are not a member of it.</p>
        </div>
      )}
    </SettingsLayout>
  )
}

interface InsideOptions extends Pick<AccountPageProps, 'account'> {
  own: AccountPageProps['account']['organizations'][number]
}

function Inside({ account, own }: InsideOptions) {
  const { route } = useLocation()
  const isOwner = own.role === 'owner'
  const isAdmin = isAtLeast(own.role, 'admin')
  const [link, setLink] = useState<ShownLink>()
  const members = usePages(own.id, cursor => readMembers(own.id, cursor))

  async function goHome(message: string) {
    route(PATHS.account, true)
    await loadSession()
    showToast({ message })
  }

  return (
    <div class="settings">
      <h1 class="page-title">
        <bdi>{own.name}</bdi>
      </h1>
      {isOwner && <RenameOrganization organization={own.id} name={own.name} />}
      <Projects own={own} />
      <Members account={account} own={own} members={members} link={link} onLink={setLink} />
      {isOwner && (
        <ResetLinks
          organization={own.id}
          newest={link?.id}
          onWithdrawn={id => {
            if (link?.id === id) setLink(undefined)
          }}
        />
      )}
      {isAdmin && <Invites account={account} own={own} />}
      {isAdmin && (
        <Tokens
          owner={{ organization: own.id }}
          lead="Programs use a token to manage this organization with the API. It ends when its creator leaves."
          organizations={[own]}
        />
      )}
      {isAdmin && (
        <SignInRules organization={own.id} role={own.role} isOperator={account.person.isOperator} />
      )}
      {isOwner && <SecondFactorSetting organization={own.id} />}
      {isAdmin && (
        <AuditLog
          organization={own.id}
          people={members.items.map(({ person: { id, name } }) => ({ id, name }))}
        />
      )}
      <section class="section" aria-labelledby="end">
        <h2 id="end">Leave or delete</h2>
        <div class="actions">
          <ConfirmButton
            action="Leave"
            title={
              <>
                Leave <bdi>{own.name}</bdi>?
              </>
            }
            lead="You lose access until somebody invites you again. The last owner cannot leave."
            yes="Leave"
            isQuiet
            send={() => leaveOrganization(own.id)}
            onDone={() => void goHome(`You left ${own.name}.`)}
          />
          {isOwner && (
            <ConfirmButton
              action="Delete organization"
              title={
                <>
                  Delete <bdi>{own.name}</bdi>?
                </>
              }
              lead="All its projects, events, API keys and webhooks are deleted for all members. This cannot be undone."
              yes="Delete permanently"
              send={() => deleteOrganization(own.id)}
              onDone={() => void goHome(`${own.name} deleted.`)}
            />
          )}
        </div>
      </section>
      {account.person.isOperator && (
        <section class="section" aria-labelledby="another">
          <h2 id="another">New organization</h2>
          <CreateOrganization />
        </section>
      )}
    </div>
  )
}
