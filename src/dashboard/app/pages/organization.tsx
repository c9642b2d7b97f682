import type { AccountPageProps } from './props.ts'
import { AuditTab } from '../organization/audit-tab.tsx'
import { GeneralTab } from '../organization/general-tab.tsx'
import { MembersTab } from '../organization/members-tab.tsx'
import { SecondFactorRequired } from '../organization/second-factor-required.tsx'
import { SecurityTab } from '../organization/security-tab.tsx'
import { OrganizationTabs } from '../organization/tabs.tsx'
import { Layout } from '../components/layout.tsx'
import { ORGANIZATION_TABS, toOrganizationPath, type OrganizationTab } from '../paths.ts'
import { isAtLeast } from '../session.ts'
import { Tokens } from '../tokens/tokens.tsx'

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
