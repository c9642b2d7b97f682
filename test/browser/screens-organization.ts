import { toTotpUri } from '../../src/access/second-factor/totp.ts'
import { toQrCode } from '../../src/http/qr-code.ts'
import { ACCOUNT, type FakeApi } from '../support/fakes/api.ts'
import { BAD_SERVER, fillOrganization, setRole } from '../support/fakes/organization.ts'
import type { Screen } from './screens.ts'

const ORGANIZATION = '/settings/organizations/org_1'
const withNothing = (api: FakeApi) => {
  fillOrganization(api)
  const [organization] = ACCOUNT.organizations
  api.on('GET /api/me', () => ({
    data: { ...ACCOUNT, organizations: [{ ...organization, projects: [] }] },
  }))
  const none = () => ({ data: { items: [], nextCursor: null } })
  api.on('GET /api/organizations/org_1/invites', none)
  api.on('GET /api/organizations/org_1/reset-links', none)
  api.on('GET /api/organizations/org_1/audit', none)
}

const withSecret = (api: FakeApi) => {
  fillOrganization(api)
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  const uri = toTotpUri(secret, 'ada@example.com')
  api.on('POST /api/second-factor', () => ({ data: { secret, uri, qr: toQrCode(uri) } }))
}

const withRequirement = (api: FakeApi) => {
  fillOrganization(api)
  const [organization] = ACCOUNT.organizations
  const credentials = { ...ACCOUNT.credentials, passkeys: 1, hasSecondFactor: true }
  const organizations = [{ ...organization, needsSecondFactor: true, projects: [] }]
  api.on('GET /api/me', () => ({ data: { ...ACCOUNT, credentials, organizations } }))
}

/** The account, the organization and the server. */
export const ORGANIZATION_SCREENS: Screen[] = [
  {
    name: 'account',
    path: '/account',
    prepare: fillOrganization,
    until: 'text=Safari on iPhone',
  },
  {
    name: 'account-forms',
    path: '/account',
    prepare: fillOrganization,
    until: 'text=Deployment',
    act: async page => {
      await page.getByRole('button', { name: 'Change password' }).click()
      await page.getByRole('button', { name: 'Create token' }).click()
      await page.getByLabel('Name').last().fill('Nightly')
    },
  },
  {
    name: 'account-authenticator',
    path: '/account',
    prepare: withSecret,
    until: 'text=Safari on iPhone',
    async act(page) {
      await page.getByRole('button', { name: 'Set up' }).click()
      await page.getByText('Scan this code').waitFor()
    },
  },
  {
    name: 'second-factor-required',
    path: ORGANIZATION,
    prepare: withRequirement,
    until: 'text=Use it here to continue.',
  },
  {
    name: 'home-nothing',
    path: '/',
    prepare: withNothing,
    until: 'text=You are not a member of any project.',
  },
  {
    name: 'organization',
    path: ORGANIZATION,
    prepare: fillOrganization,
    until: 'text=Leave or delete',
    act: async page => {
      await page.getByRole('button', { name: 'Settings of Newsletter' }).click()
      await page.getByText('Delete this project').waitFor()
    },
  },
  {
    name: 'organization-links',
    path: `${ORGANIZATION}/members`,
    prepare: fillOrganization,
    until: 'text=Grace Hopper',
    act: async page => {
      await page
        .getByRole('button', { name: 'Create password-reset link for Grace Hopper' })
        .click()
      await page.locator('.secret-once').waitFor()
      await page.getByRole('button', { name: 'Invite a member' }).click()
      await page.getByLabel('E-mail (optional)').scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'organization-audit',
    path: `${ORGANIZATION}/audit`,
    prepare: fillOrganization,
    until: 'text=changed the role of',
  },
  {
    name: 'organization-members',
    path: `${ORGANIZATION}/members`,
    prepare: fillOrganization,
    until: 'text=Grace Hopper',
  },
  {
    name: 'organization-security',
    path: `${ORGANIZATION}/security`,
    prepare: fillOrganization,
    until: 'text=Stop requiring it',
  },
  {
    name: 'organization-tokens',
    path: `${ORGANIZATION}/tokens`,
    prepare: fillOrganization,
    until: 'text=Create token',
  },
  {
    name: 'organization-delete',
    path: ORGANIZATION,
    prepare: fillOrganization,
    until: 'text=Leave or delete',
    act: page => page.getByRole('button', { name: 'Delete organization' }).click(),
  },
  {
    name: 'organization-viewer',
    path: `${ORGANIZATION}/members`,
    prepare: api => {
      fillOrganization(api)
      setRole(api, 'viewer')
    },
    until: 'text=Grace Hopper',
  },
  {
    name: 'organization-empty',
    path: ORGANIZATION,
    prepare: withNothing,
    until: 'text=No projects yet',
  },
  { name: 'server', path: '/settings/server', prepare: fillOrganization, until: 'text=signed in' },
  {
    name: 'server-bad',
    path: '/settings/server',
    prepare: api => {
      fillOrganization(api)
      api.on('GET /api/server', () => ({ data: BAD_SERVER }))
    },
    until: 'text=overdue',
  },
  {
    name: 'server-not-operator',
    path: '/settings/server',
    prepare: api => setRole(api, 'owner'),
    until: 'text=Only the operator',
  },
]
