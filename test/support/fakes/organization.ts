import type { OrganizationUsage } from '../../../src/dashboard/server-schema.ts'
import { ACCOUNT, type FakeApi } from './api.ts'
import { fillProviders } from './openid.ts'

const AT = '2026-11-01T10:00:00.000Z'
/** A hostile name of an account. */
const HOSTILE = `${'W'.repeat(80)}\u202e <b>gnp</b> Z\u0335\u0321a\u0336l`

const account = (id: string, name: string) => ({
  ...{ id, name, email: `${id}@example.com`, isOperator: false },
})

const MEMBERS = [
  { person: ACCOUNT.person, role: 'owner', joinedAt: AT, lastSeenAt: AT },
  { person: account('per_2', 'Grace Hopper'), role: 'admin', joinedAt: AT, lastSeenAt: AT },
  { person: account('per_3', HOSTILE), role: 'viewer', joinedAt: AT, lastSeenAt: null },
]

const SESSION = {
  id: 'ses_1',
  createdAt: AT,
  lastSeenAt: AT,
  address: '198.51.100.7',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0',
  browser: 'Chrome on Linux',
  method: 'password',
  isMultiFactor: false,
  isInstalled: false,
  isCurrent: true,
}

const entry = (id: number, more: object) => ({
  ...{ id: `aud_${id}`, at: AT, actor: 'account', person: { id: 'per_1', name: 'Ada Lovelace' } },
  token: null,
  ...{ project: null, target: null, targetName: null, details: {}, detailsText: '' },
  ...{ address: '198.51.100.7', browser: 'Chrome on Linux', ...more },
})

const ENTRIES = [
  entry(5, {
    action: 'member.roleChanged',
    actionText: 'changed the role of',
    target: 'per_2',
    targetName: 'Grace Hopper',
    detailsText: 'from member, to admin',
  }),
  entry(4, {
    action: 'key.created',
    actionText: 'created the API key',
    project: { id: 'prj_2', name: 'Newsletter' },
    targetName: HOSTILE,
    detailsText: 'limit 100',
  }),
  entry(3, {
    action: 'member.joined',
    actionText: 'joined',
    person: { id: 'per_2', name: 'Grace Hopper' },
    target: 'per_2',
    targetName: 'Grace Hopper',
    detailsText: 'role member',
  }),
  entry(2, {
    action: 'webhook.disabled',
    actionText: 'disabled the webhook',
    actor: 'server',
    person: null,
    project: { id: 'prj_2', name: 'Newsletter' },
    targetName: 'Billing',
    detailsText: 'reason five days of nothing but failure',
    address: null,
    browser: null,
  }),
]

const TOKEN = {
  ...{ id: 'tok_1', name: 'Deployment', prefix: 'tdm_', lastFour: 'x7Qz', role: 'admin' },
  ...{ projects: null, createdBy: { id: 'per_1', name: 'Ada Lovelace' }, createdAt: AT },
  ...{ lastUsedAt: AT, expiresAt: AT, isExpired: false },
}
const TOKENS = [
  TOKEN,
  {
    ...{ ...TOKEN, id: 'tok_2', name: HOSTILE, role: 'viewer', lastUsedAt: null, isExpired: true },
    projects: [{ id: 'prj_2', name: 'Newsletter' }],
  },
]

const PASSKEYS = [
  {
    ...{ id: 'pky_1', name: 'Phone', isSynced: true, isDisabled: false },
    ...{ createdAt: AT, lastUsedAt: AT },
  },
  {
    ...{ id: 'pky_2', name: HOSTILE, isSynced: false, isDisabled: true },
    ...{ createdAt: AT, lastUsedAt: null },
  },
]

const USAGE: OrganizationUsage[] = [
  {
    id: 'org_1',
    name: 'Acme',
    events: { used: 1_240, limit: 1_000_000 },
    bytes: { used: 812_400_000, limit: 50_000_000_000 },
    channels: { used: 42, limit: 100_000 },
    webhooks: { used: 3, limit: 500 },
  },
  {
    id: 'org_2',
    name: 'An organization with a very long name that has used its quota of webhooks',
    events: { used: 0, limit: 1_000_000 },
    bytes: { used: 0, limit: 50_000_000_000 },
    channels: { used: 7, limit: 100_000 },
    webhooks: { used: 500, limit: 500 },
  },
]
/** A server with everything wrong at once. */
const SERVER = {
  ...{ version: '0.1.0', runtime: 'Bun 1.4.5', startedAt: AT, projects: 4, events: 10_234_567 },
  ...{ url: 'http://localhost:3000', isUrlSet: false, isHttps: false, sockets: 12 },
  database: { kind: 'external', version: '18.4', bytes: 1_234_567_890 },
  disk: { folder: '/var/lib/tidings', freeBytes: 1_200_000_000, totalBytes: 80_000_000_000 },
  deliveries: { pending: { push: 0, webhook: 100_000 }, oldestMs: 3_720_000, running: 64 },
  push: { keyId: null, subject: null, isSubjectSet: false, devices: 7 },
}

const page =
  (items: unknown[], nextCursor: string | null = null) =>
  () => ({
    data: { items, nextCursor },
  })

/** Adds the data for the pages of the account, the organization and the server. */
export function fillOrganization(api: FakeApi): void {
  fillProviders(api)
  const organization = '/api/organizations/org_1'
  api.on(
    'GET /api/sessions',
    page([
      SESSION,
      { ...SESSION, id: 'ses_2', browser: 'Safari on iPhone', isInstalled: true, isCurrent: false },
      { ...SESSION, id: 'ses_3', browser: 'A browser', userAgent: HOSTILE, isCurrent: false },
    ]),
  )
  for (const path of ['/api/tokens', `${organization}/tokens`]) api.on(`GET ${path}`, page(TOKENS))
  api.on('GET /api/passkeys', () => ({ data: { items: PASSKEYS } }))
  api.on(`GET ${organization}`, () => ({
    data: {
      ...{ id: 'org_1', name: 'Analytical Engines', role: 'owner', createdAt: AT, members: 3 },
      ...{ requiresSecondFactor: true, membersWithoutSecondFactor: 2, projects: [] },
    },
  }))
  api.on(`GET ${organization}/members`, page(MEMBERS))
  api.on(
    `GET ${organization}/invites`,
    page([
      {
        ...{ id: 'inv_1', role: 'member', email: `${'long'.repeat(12)}@example.com` },
        ...{ expiresAt: AT, invitedBy: 'Ada Lovelace', createdAt: AT },
      },
      {
        ...{ id: 'inv_2', role: 'viewer', email: null },
        ...{ expiresAt: AT, invitedBy: 'Grace Hopper', createdAt: AT },
      },
    ]),
  )
  api.on(`POST ${organization}/members/per_2/reset-link`, () => ({
    status: 201,
    data: {
      id: 'rst_2',
      url: 'https://tidings.example.com/reset#cUDX2rVx0R1kRr6yB6nJzj0u4c9m1Yw7Qe5tS8pLhGk',
      expiresAt: '2026-11-21T10:00:00.000Z',
    },
  }))
  api.on(
    `GET ${organization}/reset-links`,
    page([
      {
        ...{ id: 'rst_1', person: { id: 'per_2', name: 'Grace Hopper' } },
        ...{ createdBy: 'Ada Lovelace', createdAt: AT, expiresAt: AT },
      },
    ]),
  )
  api.on(`GET ${organization}/audit`, page(ENTRIES, 'aud_2'))
  api.on('GET /api/projects/:id', () => ({
    data: {
      ...{ id: 'prj_2', name: 'Newsletter', organization: { id: 'org_1', name: 'Analytical' } },
      ...{ role: 'owner', keepDays: 90, createdAt: AT, head: 81_023 },
    },
  }))
  api.on('GET /api/server', () => ({ data: SERVER }))
  api.on('GET /api/server/organizations', () => ({ data: { items: USAGE } }))
  api.on(
    'GET /api/server/audit',
    page([
      entry(2, { action: 'session.created', actionText: 'signed in' }),
      entry(1, {
        action: 'session.refused',
        actionText: 'failed to sign in as',
        actor: 'anonymous',
        person: null,
        target: 'per_1',
        targetName: 'Ada Lovelace',
      }),
    ]),
  )
}

/** Changes the role of the account. */
export function setRole(api: FakeApi, role: string, isOperator = false): void {
  const [organization] = ACCOUNT.organizations
  api.on('GET /api/me', () => ({
    data: {
      ...ACCOUNT,
      person: { ...ACCOUNT.person, isOperator },
      organizations: [{ ...organization, role }],
    },
  }))
}
