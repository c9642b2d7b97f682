import type { AccountPageProps } from './props.ts'
import { GeneralTab, type TabOptions } from '../organization/general-tab.tsx'
import { MembersTab } from '../organization/members.tsx'
import { Layout } from '../components/layout.tsx'
import { ORGANIZATION_TABS, toOrganizationPath, type OrganizationTab } from '../paths.ts'
import { isAtLeast, setAccount } from '../session.ts'
import { Tokens } from '../tokens/tokens.tsx'
import { AuditLog } from '../audit/audit-log.tsx'
import { usePages } from '../components/pages.tsx'
import { SignInRules } from '../openid/sign-in-rules.tsx'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Passkeys } from '../account/passkeys.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { Ways } from '../components/verification-ways.tsx'
import { useEffect, useRef } from 'preact/hooks'
import type { Organization } from '../../../access/organizations/schema.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { Section } from '../components/item.tsx'

/** An organization in tabs. Members see the first two, and admins all of them. */
export default function OrganizationPage(props: AccountPageProps) {
  const { account, organization = '', tab } = props
  const own = account.organizations.find(({ id }) => id === organization)
  return (
    <Layout
      account={account}
      path={toOrganizationPath(organization)}
      organization={own?.id}
      title={own?.name ?? 'Organization'}
    >
      {own?.needsSecondFactor ? (
        <SecondFactorRequired account={account} name={own.name} />
      ) : own ? (
        <Inside key={own.id} account={account} own={own} tab={tab} />
      ) : (
        <div class="empty-state">
          <h1>Organization not found</h1>
          <p>It does not exist, or you are not a member of it.</p>
        </div>
      )}
    </Layout>
  )
}

interface InsideOptions extends Pick<AccountPageProps, 'account' | 'tab'> {
  own: AccountPageProps['account']['organizations'][number]
}

function Inside({ account, own, tab }: InsideOptions) {
  const tabs = isAtLeast(own.role, 'admin') ? ORGANIZATION_TABS : ORGANIZATION_TABS.slice(0, 2)
  const current = tabs.find(one => one === tab) ?? 'general'
  return (
    <div class="settings">
      <h1 class="page-title">
        <bdi>{own.name}</bdi>
      </h1>
      <OrganizationTabs organization={own.id} tabs={tabs} current={current} />
      <Content account={account} own={own} tab={current} />
    </div>
  )
}

function Content({ account, own, tab }: InsideOptions & { tab: OrganizationTab }) {
  switch (tab) {
    case 'general':
      return <GeneralTab account={account} own={own} />
    case 'members':
      return <MembersTab account={account} own={own} />
    case 'security':
      return <SecurityTab account={account} own={own} />
    case 'tokens':
      return (
        <Tokens
          isPrimary
          owner={{ organization: own.id }}
          lead="Programs use a token to manage this organization with the API. It ends when its creator leaves."
          organizations={[own]}
        />
      )
    case 'audit':
      return <AuditTab organization={own.id} />
  }
}

/** The audit log of an organization, which can be filtered by its members. */
function AuditTab({ organization }: { organization: string }) {
  const members = usePages('GET /api/organizations/:organizationId/members', {
    organizationId: organization,
    limit: 50,
  })
  return (
    <AuditLog
      organization={organization}
      members={members.items.map(({ person: { id, name } }) => ({ id, name }))}
    />
  )
}

/** The required second factor of an organization, and its sign-in rules. */
function SecurityTab({ account, own }: TabOptions) {
  return (
    <>
      {own.role === 'owner' ? (
        <SecondFactorSetting organization={own.id} />
      ) : (
        <p class="note">Only owners can require a second factor.</p>
      )}
      <SignInRules organization={own.id} role={own.role} isOperator={account.person.isOperator} />
    </>
  )
}

interface SecondFactorRequiredOptions {
  account: Account
  /** The name of the organization that requires it. */
  name: string
}

/** Leads a member to a second factor, without which the organization cannot be reached. */
function SecondFactorRequired({ account, name }: SecondFactorRequiredOptions) {
  const { passkeys, hasSecondFactor } = account.credentials
  const hasNone = passkeys === 0 && !hasSecondFactor
  return (
    <div class="settings">
      <h1 class="page-title">One more step</h1>
      <p class="page-lead">
        <bdi>{name}</bdi> requires a passkey or an authenticator app, and you signed in without one.{' '}
        {hasNone ? 'Add one' : 'Use it'} here to continue.
      </p>
      <Ways needsFactor account={account} onDone={setAccount} />
      {hasNone && (
        <>
          <Passkeys />
          <SecondFactor account={account} />
        </>
      )}
    </div>
  )
}

const NAMES: Readonly<Record<OrganizationTab, string>> = {
  general: 'General',
  members: 'Members',
  security: 'Security',
  tokens: 'Tokens',
  audit: 'Audit log',
}

interface TabsOptions {
  organization: string
  tabs: readonly OrganizationTab[]
  current: OrganizationTab
}

/** Links to the tabs of an organization. */
function OrganizationTabs({ organization, tabs, current }: TabsOptions) {
  const row = useRef<HTMLUListElement>(null)
  // On a phone the row scrolls.
  useEffect(() => {
    const here = row.current?.querySelector<HTMLElement>('[aria-current]')
    if (row.current && here)
      row.current.scrollLeft = here.offsetLeft + (here.offsetWidth - row.current.clientWidth) / 2
  }, [current])
  return (
    <nav aria-label="Organization">
      <ul class="tab-row" ref={row}>
        {tabs.map(tab => (
          <li key={tab}>
            <a
              class="tab"
              href={toOrganizationPath(organization, tab)}
              aria-current={tab === current ? 'page' : undefined}
            >
              {NAMES[tab]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** Lets an owner require a passkey or an authenticator app of every member. */
function SecondFactorSetting({ organization: id }: { organization: string }) {
  const organization = useRoute('GET /api/organizations/:organizationId', { organizationId: id })
  return (
    <Section id="second-factor" title="Second factor">
      <Loaded query={organization}>
        {data => <Setting organization={data} onChange={() => void organization.refetch()} />}
      </Loaded>
    </Section>
  )
}

interface SettingOptions {
  organization: Organization
  onChange(): void
}

function Setting({ organization, onChange }: SettingOptions) {
  const { id, requiresSecondFactor, membersWithoutSecondFactor: without } = organization
  const require = (requiresSecondFactor: boolean) =>
    request('PATCH /api/organizations/:organizationId', {
      organizationId: id,
      requiresSecondFactor,
    })
  const lead =
    without === 0
      ? 'All members have a passkey or an authenticator app.'
      : `Members without a passkey or an authenticator app: ${without.toLocaleString()}.`
  return (
    <>
      <p class="note">
        {requiresSecondFactor && <span class="badge badge-good">Required</span>} {lead}
      </p>
      <div class="actions">
        {requiresSecondFactor ? (
          <ConfirmButton
            isQuiet
            action="Stop requiring it"
            title="Stop requiring a second factor?"
            lead="Members reach the organization with a password alone again."
            yes="Stop requiring it"
            send={() => require(false)}
            onDone={onChange}
          />
        ) : (
          <ConfirmButton
            isQuiet
            action="Require a second factor"
            title="Require a second factor?"
            lead="Members who signed in with a password alone lose access until they use a passkey or a code. Their devices receive no notifications until then."
            yes="Require it"
            send={() => require(true)}
            onDone={() => {
              onChange()
              showToast('Members need a passkey or a code from now on.')
            }}
          />
        )}
      </div>
    </>
  )
}
