import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hashPassword } from '../../src/accounts/credentials.ts'
import { ACTIONS, type Action } from '../../src/accounts/permissions.ts'
import { toId } from '../../src/ids.ts'
import { API, type ApiContract } from '../support/contracts.ts'
import { createApi, newSignedInAccount } from '../support/signed-in-account.ts'
import { BODIES, PASSWORD } from '../support/request-bodies.ts'
import { boot, type Booted } from '../support/server.ts'
import { insertPasskey, prepareOwn } from '../support/passkeys.ts'
import { insertConnection, insertProvider } from '../support/connections.ts'
import { insertSubscription } from '../support/push.ts'
import { newFullTenant, toPath, type FullTenant } from '../support/full-tenant.ts'

// Repeats contract §12 on purpose: a change of permissions.ts must be made here, too.
const LEAST: Partial<Record<Action, Asker>> = {}
for (const [asker, actions] of Object.entries({
  anybody: `setup.read setup.complete session.create session.end reset.complete invite.read invite.accept
    signIn.read openid.visit`,
  stranger: `account.read account.edit account.export account.delete account.verify account.changePassword sessions.read sessions.end
    account.verifyByPasskey account.removePassword passkeys.read passkeys.create passkeys.add passkeys.edit
    passkeys.remove account.addSecondFactor secondFactor.create secondFactor.confirm secondFactor.remove
    secondFactor.createCodes connections.remove
    push.read push.subscribe push.edit push.remove push.test`,
  viewer: `organization.read organization.leave members.read project.read channels.read events.read
    events.markRead notifications.read notifications.edit users.read webhooks.read`,
  member: 'channels.edit users.editAliases',
  admin: `members.remove invites.read invites.create invites.withdraw audit.read signInRules.read projects.create project.edit
    keys.read keys.create keys.edit keys.rotate keys.revoke events.delete users.erase webhooks.readAttempts
    webhooks.create webhooks.edit webhooks.rotate webhooks.operate webhooks.delete
    deliveries.read deliveries.replay`,
  owner: `signInRules.edit organization.edit organization.delete members.changeRole members.resetPassword resetLinks.read
    resetLinks.withdraw project.delete`,
  operator: `server.read organizations.create providers.read providers.create providers.edit
    providers.delete providers.check`,
})) {
  for (const action of actions.split(/\s+/)) LEAST[action as Action] = asker as Asker
}
const GUARDED = new Set<Action>([
  'account.delete',
  'account.removePassword',
  'passkeys.create',
  'secondFactor.create',
  'secondFactor.confirm',
  'secondFactor.remove',
  'secondFactor.createCodes',
  'passkeys.add',
  'passkeys.remove',
  'signInRules.edit',
  'organization.delete',
  'members.resetPassword',
  'project.delete',
  'keys.create',
  'keys.rotate',
  'users.erase',
  'webhooks.create',
  'webhooks.edit',
  'webhooks.rotate',
  'webhooks.delete',
])
/** From the lowest to the highest; the operator is a member of no organization here. */
const LADDER = ['anybody', 'stranger', 'viewer', 'member', 'admin', 'owner'] as const
type Asker = (typeof LADDER)[number] | 'operator'

let server: Booted
let hash: string
/** A tenant whose members all requests are refused for, so that it never changes. */
let untouched: FullTenant
beforeAll(async () => {
  server = await boot({}, { kinds: [] })
  hash = await hashPassword(PASSWORD)
  untouched = await newFullTenant(server)
  // The last operator cannot delete their account.
  await newSignedInAccount(server, { isOperator: true })
})
afterAll(() => server[Symbol.asyncDispose]())

test('contract §12 every action has its lowest role here', () => {
  expect(Object.keys(LEAST).toSorted()).toEqual(Object.keys(ACTIONS).toSorted())
})

test('contract §12 every action belongs to a route, and every route declares one', () => {
  const declared = new Set<string>(API.map(({ action }) => action))
  expect([...declared].toSorted()).toEqual(Object.keys(ACTIONS).toSorted())
  for (const { path, action } of API) {
    const place = ACTIONS[action].on
    expect([path, path.includes(':projectId')]).toEqual([path, place === 'project'])
    expect([path, path.includes(':organizationId')]).toEqual([path, place === 'organization'])
  }
})

describe.each(
  API.filter(({ action }) => LEAST[action] !== 'anybody').map(one => [toName(one), one] as const),
)('contract §12 %s', (_, contract) => {
  const least = LEAST[contract.action]!
  test.each([...LADDER, 'operator'] as const)(`%s (from ${least} on)`, async asker => {
    const isWelcome = isAllowed(asker, least)
    const tenant = isWelcome ? await newFullTenant(server) : untouched
    const { status, body } = await ask(tenant, contract, asker)
    if (isWelcome) expect([status < 300, body?.code]).toEqual([true, undefined])
    else expect([status, body.code]).toEqual(toRefusal(asker, contract))
  })

  if (!GUARDED.has(contract.action)) return
  test('reliability §6 asks for the password if it was typed more than 10 minutes ago', async () => {
    const tenant = await newFullTenant(server)
    await server.sql`
      update sessions set verified_at = now() - interval '601 seconds'
      where account_id = ${tenant.people.owner.uuid}
    `
    const { status, body } = await ask(tenant, contract, 'owner')
    expect([status, body.code]).toEqual([403, 'verification_needed'])
  })
})

async function ask(tenant: FullTenant, contract: ApiContract, asker: Asker) {
  const json = BODIES[contract.action]?.(tenant)
  if (contract.body && !json) throw new Error(`No test knows a body for ${contract.action}`)
  const options = { method: contract.method, ...(contract.body && { json }) }
  if (asker === 'anybody') {
    return createApi(server.url).request(toPath(contract, tenant.params), options)
  }
  const person =
    asker === 'stranger' || asker === 'operator'
      ? await newSignedInAccount(server, { isOperator: asker === 'operator' })
      : tenant.people[asker]
  await server.sql`update accounts set password_hash = ${hash} where id = ${person.uuid}`
  if (contract.path.includes(':provider')) await insertProvider(server)
  // Every account has its own sessions, devices, passkeys and connections.
  const params = {
    ...tenant.params,
    sessionId: toId('ses', person.sessionId),
    ...(tenant !== untouched && {
      subscriptionId: await insertSubscription(server, person),
      passkeyId: await insertPasskey(server, person),
      connectionId: await insertConnection(server, person),
    }),
  }
  const own = await prepareOwn(server, person, contract.action)
  return person.request(toPath(contract, params), { ...options, ...(own && { json: own }) })
}

function isAllowed(asker: Asker, least: Asker): boolean {
  if (least === 'operator') return asker === 'operator'
  if (asker === 'operator') return least === 'stranger'
  return LADDER.indexOf(asker) >= LADDER.indexOf(least)
}

function toRefusal(asker: Asker, { action }: ApiContract): [status: number, code: string] {
  if (asker === 'anybody') return [401, 'signed_out']
  const isOutside = asker === 'stranger' || asker === 'operator'
  if (ACTIONS[action].on === 'installation' || !isOutside) return [403, 'forbidden']
  return [404, 'not_found']
}

function toName({ method, path }: ApiContract): string {
  return `${method} ${path}`
}
