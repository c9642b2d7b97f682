import { beforeAll, expect, test } from 'bun:test'
import { randomInt } from 'node:crypto'
import { hashPassword } from '../../../src/access/sign-in/credentials.ts'
import { ACTIONS, type Action, type Role } from '../../../src/access/guard/permissions.ts'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { toId } from '../../../src/base/ids.ts'
import { ageVerification } from '../../support/worlds/ageing.ts'
import { API, type ApiContract } from '../../support/contracts.ts'
import { createTokenApi, newManagementToken } from '../../support/worlds/management-token.ts'
import {
  createApi,
  addMember,
  newOrganization,
  newSession,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { BODIES, PASSWORD } from '../../support/request-bodies.ts'
import { withServer } from '../../support/servers/server.ts'
import { insertPasskey, prepareOwn } from '../../support/worlds/passkeys.ts'
import { COMPANY, insertConnection } from '../../support/worlds/connections.ts'
import { insertSubscription } from '../../support/worlds/push.ts'
import { newFullTenant, toPath, type FullTenant } from '../../support/worlds/full-tenant.ts'

// Repeats contract §12 on purpose: a change of permissions.ts must be made here, too.
const LEAST: Partial<Record<Action, Asker>> = {}
for (const [asker, actions] of Object.entries({
  anybody: `setup.read setup.complete session.create session.end reset.complete invite.read invite.accept
    signIn.read openid.visit`,
  stranger: `account.read overview.read account.edit account.export account.delete account.verify account.changePassword sessions.read sessions.end
    account.verifyByPasskey account.removePassword passkeys.read passkeys.create passkeys.add passkeys.edit
    passkeys.remove account.addSecondFactor secondFactor.create secondFactor.confirm secondFactor.remove
    secondFactor.createCodes account.changeAddress connections.create connections.remove tokens.read
    tokens.create tokens.withdraw
    push.read push.subscribe push.edit push.remove push.test`,
  viewer: `organization.read organization.leave members.read project.read channels.read events.read
    events.markRead heartbeats.read hooks.read insights.read notifications.read notifications.edit rules.read silences.read users.read views.read views.edit views.setBell views.markSeen webhooks.read`,
  member:
    'channels.create channels.edit events.acknowledge events.answer heartbeats.edit insights.edit onDuty.edit rules.edit rules.preview silences.edit users.editAliases',
  admin: `members.remove invites.read invites.create invites.withdraw audit.read signInRules.read projects.create
    sampleProject.create sampleProject.delete
    organizationTokens.read organizationTokens.create organizationTokens.withdraw project.edit
    hooks.create hooks.edit hooks.rotate keys.read keys.create keys.edit keys.rotate keys.revoke events.delete users.erase webhooks.readAttempts
    webhooks.preview webhooks.create webhooks.edit webhooks.rotate webhooks.operate webhooks.delete
    deliveries.read deliveries.replay`,
  owner: `signInRules.edit organization.edit organization.delete members.changeRole members.resetPassword resetLinks.read
    resetLinks.withdraw project.delete`,
  operator: `server.read organizations.create providers.read providers.check`,
  token: 'currentToken.read',
})) {
  for (const action of actions.split(/\s+/)) LEAST[action as Action] = asker as Asker
}
const toSet = (actions: string) => new Set(actions.trim().split(/\s+/) as Action[])
const GUARDED = toSet(`
  account.delete account.removePassword connections.create passkeys.create
  secondFactor.create secondFactor.confirm secondFactor.remove secondFactor.createCodes
  passkeys.add passkeys.remove signInRules.edit connections.remove tokens.create
  organizationTokens.create organization.delete members.resetPassword project.delete
  hooks.create hooks.rotate keys.create keys.rotate users.erase webhooks.create
  webhooks.edit webhooks.rotate webhooks.delete
`)
/** Further actions that ask for the own factor of an account. */
const FACTOR_ONLY = toSet(`
  account.changePassword account.export organization.leave members.remove
  members.changeRole invites.create
`)
/** Actions that an owner may do who is also an operator. */
const OPERATORS_ONLY = new Set<Action>(['signInRules.edit'])
/** Actions on organizations and projects that no token may do. */
const SESSION_ONLY = toSet(`
  organization.leave organization.delete members.resetPassword organizationTokens.read
  organizationTokens.create organizationTokens.withdraw project.delete
  sampleProject.delete hooks.create hooks.rotate keys.create keys.rotate users.erase
  signInRules.edit
`)
/** Actions on what belongs to an account, which organization tokens may not do. */
const PERSONAL_ONLY = toSet(`
  notifications.read notifications.edit events.markRead views.read views.edit
  views.setBell views.markSeen
`)
/** From the lowest to the highest; the operator is a member of no organization here. */
const LADDER = ['anybody', 'stranger', 'viewer', 'member', 'admin', 'owner'] as const
type Asker = (typeof LADDER)[number] | 'operator' | 'token'

const server = withServer({ trustedProxies: ['127.0.0.0/8'], providers: [COMPANY] }, { kinds: [] })
let hash: string
/** A tenant that no request may change. */
let untouched: FullTenant
/** The bearer tokens of this tenant, by the name of their credential. */
let bearers: Record<string, string>
let requests = 0

beforeAll(async () => {
  hash = await hashPassword(PASSWORD, 'test')
  untouched = await newFullTenant(server)
  // The last operator cannot delete their account.
  await newSignedInAccount(server, { isOperator: true })
  const names = [...CREDENTIALS].filter(([, { kind }]) => kind !== 'session').map(([name]) => name)
  const made = names.map(async name => [name, await newBearer(untouched, name)] as const)
  bearers = Object.fromEntries(await Promise.all(made))
})

/** A credential of the matrix: a session, a token, or something else in the place of a token. */
type Credential =
  | { kind: 'session'; asker: Asker; isUnverified?: boolean; isWeak?: boolean }
  | {
      kind: 'personal' | 'organization'
      /** The lower one of the role of its creator and its own role. */
      asker: (typeof LADDER)[number] | 'operator'
      /** Set for a token that is limited to the project of the request, or to another one. */
      limit?: 'here' | 'elsewhere'
    }
  | { kind: 'invalid' }

const TOKEN_ROLES = ['viewer', 'member', 'admin', 'owner'] as const

/** Every kind of credential, by name. */
const CREDENTIALS = new Map<string, Credential>([
  ...[...LADDER, 'operator' as const].map(
    asker => [`session of ${asker}`, { kind: 'session', asker }] as const,
  ),
  ['unverified session of owner', { kind: 'session', asker: 'owner', isUnverified: true }],
  // The owner has a passkey, and the admin has none.
  ['session of owner without its factor', { kind: 'session', asker: 'owner', isWeak: true }],
  ['session of admin who has no factor', { kind: 'session', asker: 'admin', isWeak: true }],
  ...(['stranger', ...TOKEN_ROLES, 'operator'] as const).map(
    asker => [`personal token of ${asker}`, { kind: 'personal', asker }] as const,
  ),
  ...TOKEN_ROLES.map(
    asker => [`organization token as ${asker}`, { kind: 'organization', asker }] as const,
  ),
  ['organization token of another', { kind: 'organization', asker: 'stranger' }],
  ['token of the project', { kind: 'personal', asker: 'owner', limit: 'here' }],
  ['token of another project', { kind: 'personal', asker: 'owner', limit: 'elsewhere' }],
  ...[
    ...['expired token', 'withdrawn token', 'API key', 'session secret', 'setup link'],
    ...['reset link', 'invite link', 'no word'],
  ].map(name => [name, { kind: 'invalid' }] as const),
])

test('contract §12 every action has its lowest role here', () => {
  expect(Object.keys(LEAST).toSorted()).toEqual(Object.keys(ACTIONS).toSorted())
})

test('contract §12 every action belongs to a route, and every route declares one', () => {
  const declared = new Set<string>(API.map(({ action }) => action))
  // A part of `account.edit`, which its route checks.
  declared.add('account.changeAddress')
  expect([...declared].toSorted()).toEqual(Object.keys(ACTIONS).toSorted())
  for (const { path, action } of API) {
    const place = ACTIONS[action].on
    expect([path, path.includes(':projectId')]).toEqual([path, place === 'project'])
    expect([path, path.includes(':organizationId')]).toEqual([path, place === 'organization'])
  }
})

test.each(API.map(one => [toName(one), one] as const))(
  'contract §12 %s: every credential',
  async (_, contract) => {
    const answers = await Promise.all(
      [...CREDENTIALS].map(async ([name, credential]) => {
        const expected = toExpected(credential, contract)
        return [name, expected, await tryOut(contract, name, expected)] as const
      }),
    )
    const toTable = (place: 1 | 2) =>
      Object.fromEntries(answers.map(answer => [answer[0], answer[place]]))
    expect(toTable(2)).toEqual(toTable(1))
  },
)

// A connection needs a visit to a provider, which openid.test.ts makes.
const changing = API.filter(
  ({ action, method }) =>
    method !== 'GET' && ACTIONS[action].on !== 'anyone' && action !== 'connections.create',
)

test.each(changing.map(one => [toName(one), one] as const))(
  'contract §12 %s: the lowest role and a token do it',
  async (_, contract) => {
    const least = LEAST[contract.action]!
    const credentials = [`session of ${least}`, toLeastToken(contract)].filter(one => one !== null)
    for (const name of credentials) {
      const answer = await succeed(contract, name)
      expect([name, answer.status < 300, answer.body]).toEqual([
        name,
        true,
        expect.objectContaining({ success: true }),
      ])
    }
  },
)

/** The tenant of the last request. Another one follows where that has removed what this needs. */
let tenant: FullTenant | undefined
async function succeed(contract: ApiContract, name: string): ReturnType<typeof ask> {
  const first = tenant && (await ask(tenant, contract, { name }))
  if (first && first.status < 300) return first
  tenant = await newFullTenant(server)
  return ask(tenant, contract, { name })
}

test('the matrix has a cell for each route and credential', () => {
  const cells = API.length * CREDENTIALS.size
  console.info(`${API.length} routes × ${CREDENTIALS.size} credentials = ${cells} cells`)
  expect(requests).toBe(cells)
})

type Outcome = 'passes' | `${number} ${string}`

/** Returns the outcome that contract §12 demands. */
function toExpected(credential: Credential, contract: ApiContract): Outcome {
  const { action } = contract
  const { on } = ACTIONS[action]
  if (credential.kind === 'invalid') return '401 signed_out'
  const { asker } = credential
  const isOutside = asker === 'stranger' || asker === 'operator'
  const least = LEAST[action]!
  if (credential.kind === 'session') {
    if (on === 'anyone') return 'passes'
    if (asker === 'anybody') return '401 signed_out'
    if (on === 'token') return '403 forbidden'
    if (!isAllowed(asker, least)) {
      return on === 'installation' || !isOutside ? '403 forbidden' : '404 hidden'
    }
    if (OPERATORS_ONLY.has(action)) return '403 forbidden'
    const isProven = !credential.isWeak || asker !== 'owner'
    if (!isProven && (GUARDED.has(action) || FACTOR_ONLY.has(action))) {
      return '403 second_factor_needed'
    }
    return credential.isUnverified && GUARDED.has(action) ? '403 verification_needed' : 'passes'
  }
  if (on === 'token') return 'passes'
  if (on !== 'organization' && on !== 'project') return '403 forbidden'
  if (SESSION_ONLY.has(action)) return '403 forbidden'
  if (credential.kind === 'organization' && PERSONAL_ONLY.has(action)) return '403 forbidden'
  if (isOutside) return '404 hidden'
  if (!isAllowed(asker, least)) return '403 forbidden'
  if (credential.limit === undefined) return 'passes'
  if (on === 'organization') return '403 forbidden'
  return credential.limit === 'here' ? 'passes' : '404 hidden'
}

/**
 * Requests a route without changing the tenant. The guard reads the body after the permissions, so
 * a broken body shows that they suffice. So does a 404 for an id that nothing has.
 */
async function tryOut(contract: ApiContract, name: string, expected: Outcome): Promise<Outcome> {
  requests++
  const params = { ...untouched.params }
  const last = /:(\w+)[^:]*$/.exec(contract.path)?.[1]
  const isHarmless = contract.method === 'GET' || contract.body !== undefined
  const isDeep = last !== undefined && last !== 'projectId' && last !== 'organizationId'
  if (!isHarmless && isDeep) params[last] = toAbsentId(params[last] ?? '')
  const isSafe = isHarmless || isDeep || expected !== 'passes'
  const tenant = isSafe ? { ...untouched, params } : await newFullTenant(server)
  const { status, body } = await ask(tenant, contract, {
    name,
    ...(isSafe && { bearer: bearers[name] }),
    isBroken: true,
  })
  if (status < 300 || body.details?.[0]?.code === 'invalid_json') return 'passes'
  // The state of a resource matters only to those who may change it.
  if (body.code === 'conflict') return 'passes'
  if (body.code !== 'not_found') return `${status} ${body.code}`
  const isHidden = /^No (organization|project) has this id$/.test(body.error)
  return isHidden ? '404 hidden' : 'passes'
}

/** Replaces the last characters of an id by others that are as valid. */
function toAbsentId(id: string): string {
  return id.slice(0, -4) + (id.endsWith('0000') ? '1111' : '0000')
}

interface Asking {
  /** The name of a credential. */
  name: string
  /** The text in the place of a token. By default it is a new one of the tenant. */
  bearer?: string | undefined
  /** True to send a body that is no JSON. */
  isBroken?: boolean
}

async function ask(tenant: FullTenant, contract: ApiContract, { name, bearer, isBroken }: Asking) {
  const credential = CREDENTIALS.get(name)!
  const json = isBroken ? undefined : BODIES[contract.action]?.(tenant)
  if (contract.body && !json && !isBroken) {
    throw new Error(`No test knows a body for ${contract.action}`)
  }
  const options = {
    method: contract.method,
    ...(contract.body && (isBroken ? { body: '{' } : { json })),
  }
  if (credential.kind !== 'session') {
    const address = `198.51.${randomInt(256)}.${randomInt(256)}`
    const secret = bearer ?? (await newBearer(tenant, name))
    const api = createTokenApi(server.url, secret, { 'x-forwarded-for': address })
    return api.request(toPath(contract, tenant.params), options)
  }
  if (contract.action === 'sampleProject.delete' && !isBroken) {
    await server.sql`
      insert into projects (id, organization_id, name, is_sample)
      values (gen_random_uuid(), ${tenant.organization.uuid}, 'Sample shop', true)
      on conflict do nothing
    `
  }
  const account = await findAccount(tenant, credential)
  if (account && OPERATORS_ONLY.has(contract.action) && !isBroken) {
    await server.sql`update accounts set is_operator = true where id = ${account.uuid}`
  }
  if (!account) return createApi(server.url).request(toPath(contract, tenant.params), options)
  // Every account has its own sessions, devices, passkeys, connections and tokens.
  const isOwn = ACTIONS[contract.action].on === 'account' && !isBroken
  const params = {
    ...tenant.params,
    ...(isOwn && {
      sessionId: toId('ses', account.sessionId),
      subscriptionId: await insertSubscription(server, account),
      tokenId: (await newManagementToken(server, { accountId: account.uuid })).id,
      passkeyId: await insertPasskey(server, account),
      connectionId: await insertConnection(server, account),
    }),
  }
  const own = isBroken ? undefined : await prepareOwn(server, account, contract.action)
  return account.request(toPath(contract, params), { ...options, ...(own && { json: own }) })
}

/** Returns an account with a session of its own, because some requests end it. */
async function findAccount(
  tenant: FullTenant,
  { asker, isUnverified, isWeak = false }: Extract<Credential, { kind: 'session' }>,
): Promise<SignedInAccount | undefined> {
  if (asker === 'anybody') return undefined
  const isMember = (TOKEN_ROLES as readonly string[]).includes(asker)
  const account = isMember
    ? await newSession(server, tenant.members[asker as Role])
    : await newSignedInAccount(server, { isOperator: asker === 'operator' })
  await server.sql`update accounts set password_hash = ${hash} where id = ${account.uuid}`
  await server.sql`
    update sessions set is_multi_factor = ${!isWeak} where id = ${account.sessionId}
  `
  if (isUnverified) await ageVerification(server.sql, account.sessionId)
  return account
}

/** Returns what stands in the place of a token, for a credential that is no session. */
async function newBearer({ organization, members, ...tenant }: FullTenant, name: string) {
  const { uuid: organizationId, project } = organization
  const accountId = members.owner.uuid
  const make = async (options: Partial<Parameters<typeof newManagementToken>[1]>) =>
    (await newManagementToken(server, { accountId, ...options })).secret
  const newElsewhere = async () => {
    const elsewhere = await newOrganization(server)
    await addMember(server, elsewhere, members.owner, 'owner')
    return elsewhere
  }
  const others: Record<string, () => Promise<string> | string> = {
    'personal token of stranger': async () =>
      make({ accountId: (await newSignedInAccount(server)).uuid }),
    'personal token of operator': async () =>
      make({ accountId: (await newSignedInAccount(server, { isOperator: true })).uuid }),
    'organization token of another': async () =>
      make({ organizationId: (await newElsewhere()).uuid }),
    'token of the project': () => make({ projectIds: [project.uuid] }),
    'token of another project': async () =>
      make({ projectIds: [(await newElsewhere()).project.uuid] }),
    'expired token': () => make({ expiresIn: '-1 second' }),
    async 'withdrawn token'() {
      const withdrawn = await newManagementToken(server, { accountId })
      await server.sql`delete from management_tokens where id = ${withdrawn.uuid}`
      return withdrawn.secret
    },
    'API key': () => tenant.key,
    'session secret': () => members.owner.cookie.split('=')[1]!,
    'setup link': () => server.server.setupToken!,
    async 'reset link'() {
      const { uuid } = await newSignedInAccount(server)
      return (await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, uuid))).token
    },
    'invite link': () => tenant.inviteToken,
    'no word': () => '',
  }
  const role = TOKEN_ROLES.find(one => name.endsWith(` ${one}`))
  if (!role) return others[name]!()
  return name.startsWith('personal token of ')
    ? make({ accountId: members[role].uuid })
    : make({ organizationId, role })
}

/** Returns the name of a token that may do an action with the lowest role, or null. */
function toLeastToken({ action }: ApiContract): string | null {
  const { on } = ACTIONS[action]
  if ((on !== 'organization' && on !== 'project') || SESSION_ONLY.has(action)) return null
  const least = LEAST[action]!
  return PERSONAL_ONLY.has(action) ? `personal token of ${least}` : `organization token as ${least}`
}

function isAllowed(asker: Asker, least: Asker): boolean {
  if (least === 'operator') return asker === 'operator'
  if (asker === 'operator') return least === 'stranger'
  return LADDER.indexOf(asker as never) >= LADDER.indexOf(least as never)
}

function toName({ method, path }: ApiContract): string {
  return `${method} ${path}`
}
