import type { AccountPage } from '../app.tsx'
import { AccountFrame } from '../parts/frame.tsx'
import { toOrganizationPath } from '../paths.ts'

export default function OrganizationPage({ account, organization = '' }: AccountPage) {
  const own = account.organizations.find(({ id }) => id === organization)
  return (
    <AccountFrame
      account={account}
      path={toOrganizationPath(organization)}
      title={own?.name ?? 'Organization'}
    >
      <h1 class="page-title">
        <bdi>{own?.name}</bdi>
      </h1>
    </AccountFrame>
  )
}
