import { toTotpUri } from '../../src/access/second-factor/totp.ts'
import { toQrCode } from '../../src/http/qr-code.ts'
import { ACCOUNT, PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { fillHooks, HOOKS } from '../support/fakes/hooks.ts'
import { fillBoard, fillOverview, noCards } from '../support/fakes/insights.ts'
import { fillOrganization, setRole } from '../support/fakes/organization.ts'
import { fillAlarms, fillHeartbeats, fillShop } from '../support/fakes/shop.ts'
import { fillKeys, fillWebhooks } from '../support/fakes/webhooks.ts'
import type { Screen } from './screens.ts'

const ORGANIZATION = '/settings/organizations/org_1'
const KEYS = `/p/${PROJECT}/settings/keys`
const WEBHOOKS = `/p/${PROJECT}/settings/webhooks`
const INSIGHTS = `/p/${PROJECT}/insights`

/** Changes the only organization of the account, which has no projects then. */
function changeOrganization(api: FakeApi, some: object = {}): void {
  const [organization] = ACCOUNT.organizations
  const credentials = { ...ACCOUNT.credentials, passkeys: 1, hasSecondFactor: true }
  const organizations = [{ ...organization, projects: [], ...some }]
  api.on('GET /api/me', () => ({ data: { ...ACCOUNT, credentials, organizations } }))
}

const fillShopAndKeys = (api: FakeApi) => [fillShop, fillKeys].forEach(fill => fill(api))
const fillShopAndWebhooks = (api: FakeApi) => [fillShop, fillWebhooks].forEach(fill => fill(api))

/** The account, the organization, the server, keys, webhooks and insights. */
export const SETTINGS_SCREENS: Screen[] = [
  {
    name: 'account',
    path: '/account',
    prepare: api => {
      fillOrganization(api)
      const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
      const uri = toTotpUri(secret, 'ada@example.com')
      api.on('POST /api/second-factor', () => ({ data: { secret, uri, qr: toQrCode(uri) } }))
    },
    until: 'text=Safari on iPhone',
    act: async page => {
      await page.getByRole('button', { name: 'Change password' }).click()
      await page.getByRole('button', { name: 'Create token' }).click()
      await page.getByLabel('Name').last().fill('Nightly')
      await page.getByRole('button', { name: 'Set up' }).click()
      await page.getByText('Scan this code').waitFor()
    },
  },
  {
    name: 'second-factor-required',
    path: ORGANIZATION,
    prepare: api => {
      fillOrganization(api)
      changeOrganization(api, { needsSecondFactor: true })
    },
    until: 'text=Use it here to continue.',
  },
  {
    name: 'home-nothing',
    path: '/',
    prepare: changeOrganization,
    until: 'text=You are not a member of any project.',
  },
  {
    name: 'rules',
    path: `/p/${PROJECT}/settings/rules`,
    prepare: fillAlarms,
    until: 'text=nothing for 1 hour',
  },
  {
    name: 'rules-none',
    path: `/p/${PROJECT}/settings/rules`,
    until: 'text=No rules yet',
    act: async page => {
      await page.getByRole('button', { name: 'New rule' }).click()
      await page.getByLabel('Search', { exact: true }).fill('payment failed')
      await page.getByLabel('Finds').focus()
      await page.getByText('Would have fired 3 times').waitFor()
      await page.getByRole('button', { name: 'Look further' }).click()
      await page.getByText('Would have fired 4 times in the last 30 days.').waitFor()
      await page.getByLabel('Finds').selectOption('silence')
      await page.getByLabel('For', { exact: true }).waitFor()
    },
  },
  {
    name: 'silences',
    path: `/p/${PROJECT}/settings/silences`,
    prepare: fillAlarms,
    until: 'text=Backups of the weekend',
  },
  {
    name: 'silences-none',
    path: `/p/${PROJECT}/settings/silences`,
    until: 'text=Nothing is silenced',
    act: async page => {
      await page.getByRole('button', { name: 'New silence' }).click()
      await page.getByLabel('How long').selectOption('hours')
      await page.getByLabel('Time zone').waitFor()
    },
  },
  {
    name: 'heartbeats',
    path: `/p/${PROJECT}/settings/heartbeats`,
    prepare: fillHeartbeats,
    until: 'text=Renewal of certificates',
    act: async page => {
      await page
        .getByText(/last result \d/)
        .first()
        .waitFor()
      await page.getByRole('button', { name: 'Address and pings of Backup of db1' }).click()
      await page.getByText('exit code 2').click()
      await page.getByText('no space left on device').waitFor()
      await page.getByRole('button', { name: 'Edit Invoices' }).click()
      await page.getByLabel('It may be late by').waitFor()
      await page.getByRole('button', { name: 'More actions for Backup of db1' }).click()
      await page.getByRole('button', { name: 'Delete' }).waitFor()
      await page.keyboard.press('Escape')
    },
  },
  {
    name: 'heartbeats-none',
    path: `/p/${PROJECT}/settings/heartbeats`,
    until: 'text=No job reports yet',
    act: async page => {
      await page.getByRole('button', { name: 'New heartbeat' }).click()
      await page.getByLabel('It reports every').waitFor()
    },
  },
  {
    name: 'hooks',
    path: HOOKS,
    prepare: fillHooks,
    until: 'text=3 with a wrong signature',
    act: async page => {
      await page.getByRole('button', { name: 'Requests of Web shop' }).click()
      await page.getByText('Headers and body').first().click()
      await page.getByRole('button', { name: 'Edit Web shop' }).click()
      await page.getByLabel('Title').fill('Order {{order.id}}')
      await page.getByText('"title": "Order {{order.id}}"').waitFor()
      await page.getByRole('button', { name: 'More actions for Old server' }).click()
      await page.getByRole('button', { name: 'Turn on' }).click()
      await page.getByRole('button', { name: 'Delete' }).waitFor({ state: 'hidden' })
      await page.getByRole('button', { name: 'New hook' }).click()
      await page.getByLabel('Name').first().fill('Alerts')
      await page.getByRole('button', { name: 'Create hook' }).click()
      await page.getByText('webhook_configs').waitFor()
    },
  },
  {
    name: 'hooks-none',
    path: HOOKS,
    until: 'text=No inbound hooks yet',
    act: async page => {
      await page.getByRole('button', { name: 'New hook' }).click()
      await page.getByLabel('Program').selectOption('stripe')
      await page.getByRole('textbox', { name: 'Secret (optional)' }).waitFor()
    },
  },
  {
    name: 'organization',
    path: ORGANIZATION,
    prepare: fillOrganization,
    until: 'text=Leave or delete',
    act: async page => {
      await page.getByRole('button', { name: 'Settings of Newsletter' }).click()
      await page.getByText('Delete this project').waitFor()
      await page.getByRole('button', { name: 'Delete organization' }).click()
    },
  },
  {
    name: 'organization-members',
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
  ...[
    { name: 'audit', until: 'text=changed the role of' },
    { name: 'security', until: 'text=Stop requiring it' },
    { name: 'tokens', until: 'text=Create token' },
  ].map(({ name, until }) => ({
    name: `organization-${name}`,
    path: `${ORGANIZATION}/${name}`,
    prepare: fillOrganization,
    until,
  })),
  { name: 'server', path: '/settings/server', prepare: fillOrganization, until: 'text=overdue' },
  {
    name: 'server-not-operator',
    path: '/settings/server',
    prepare: api => setRole(api, 'owner'),
    until: 'text=Only the operator',
  },
  {
    name: 'keys',
    path: KEYS,
    prepare: fillShopAndKeys,
    until: 'text=Nightly backup',
    act: async page => {
      await page.getByRole('button', { name: 'Requests' }).first().click()
      await page.locator('.bars-tall').waitFor()
      await page.getByRole('button', { name: 'Create a key' }).click()
    },
  },
  {
    name: 'keys-made',
    path: KEYS,
    prepare: fillShopAndKeys,
    until: 'text=Nightly backup',
    act: async page => {
      await page.getByRole('button', { name: 'Create a key' }).click()
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByText('New key: API key').waitFor()
    },
  },
  {
    name: 'webhooks',
    path: WEBHOOKS,
    prepare: fillShopAndWebhooks,
    until: 'text=A removed device',
    act: async page => {
      await page.getByText('Queue full since').waitFor()
      await page.getByRole('button', { name: 'Pending' }).click()
      await page.getByText('3 attempts').waitFor()
      await page.getByRole('button', { name: 'Add a webhook' }).click()
      await page.getByLabel('Sends').selectOption('some')
      await page.getByRole('checkbox', { name: 'payments' }).waitFor()
    },
  },
  {
    name: 'webhook',
    path: `${WEBHOOKS}/whk_1`,
    prepare: fillShopAndWebhooks,
    until: '.attempt',
    act: async page => {
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByText('Out of order').first().waitFor()
      await page.getByRole('button', { name: 'Recover missed events' }).click()
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByRole('button', { name: 'Preview' }).click()
      await page.getByText('{"text":"New payment"}').waitFor()
    },
  },
  {
    name: 'webhook-disabled',
    path: `${WEBHOOKS}/whk_5`,
    prepare: fillShopAndWebhooks,
    until: '.attempt',
    act: async page => {
      const group = page.locator('.attempt').filter({ hasText: '×2' })
      await group.click()
      await group.locator('.attempt summary').click()
      await page.getByLabel('Request').nth(1).waitFor()
      await page.getByLabel('Request').nth(1).scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'insights',
    path: INSIGHTS,
    prepare: api => {
      fillShop(api)
      fillBoard(api)
    },
    until: '.bars-tall',
    act: async page => {
      await page.getByText('Show as table').click()
      await page.getByRole('button', { name: 'Settings of Top users' }).click()
    },
  },
  {
    name: 'insights-add',
    path: `${INSIGHTS}?add=tag%3Avip&hours=24`,
    prepare: noCards,
    until: 'text=Leave it empty to count all events.',
    async act(page) {
      await page.getByLabel('Show as').selectOption('top')
      await page.getByLabel('Count by').selectOption('metadata')
    },
  },
  {
    name: 'insights-broken',
    path: INSIGHTS,
    prepare: api => {
      fillBoard(api)
      api.on('GET /api/projects/:id/insights/:card/result', () => ({
        status: 503,
        code: 'unavailable',
        error: 'The database cannot be reached. Try again shortly.',
      }))
    },
    until: 'text=Try again',
  },
  {
    name: 'overview',
    path: '/',
    prepare: fillOverview,
    until: 'text=37 new',
    act: page => page.getByText('Live', { exact: true }).waitFor(),
  },
  {
    name: 'overview-none',
    path: '/overview',
    prepare: api => api.on('GET /api/overview', () => ({ data: { projects: [], more: 0 } })),
    until: 'text=No projects yet',
  },
]
