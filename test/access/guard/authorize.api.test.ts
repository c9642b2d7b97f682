import { beforeAll, expect, test } from 'bun:test'
import { listCredentials } from '../../../src/access/guard/authorize.ts'
import { ACTIONS, type Action, type Rule } from '../../../src/access/guard/permissions.ts'
import { hashPassword } from '../../../src/access/sign-in/credentials.ts'
import type { Queryable, Tx } from '../../../src/database/sql.ts'
import { expectFailure } from '../../support/answers.ts'
import { API } from '../../support/contracts.ts'
import { hold, sendWhile } from '../../support/database-lock.ts'
import { listRows, readSection, toCode } from '../../support/docs.ts'
import { BODIES, PASSWORD } from '../../support/request-bodies.ts'
import { withServer } from '../../support/servers/server.ts'
import { COMPANY } from '../../support/worlds/connections.ts'
import { newFullTenant, toPath, type FullTenant } from '../../support/worlds/full-tenant.ts'
import { insertPasskey, prepareOwn } from '../../support/worlds/passkeys.ts'
import { newManagementToken } from '../../support/worlds/management-token.ts'
import { newSession, newTeam } from '../../support/worlds/signed-in-account.ts'

// permissions.api.test.ts has the sessions that lack the factor of their account at each route.

const WEBHOOKS = API.find(({ action }) => action === 'webhooks.create')!

const server = withServer({ providers: [COMPANY] }, { kinds: [] })

/** The actions that ask for the own factor of an account. */
const STRICT = (Object.keys(ACTIONS) as Action[]).filter(
  action => (ACTIONS[action] as Rule).proof !== undefined,
)
// Asking for the options of a passkey and beginning a visit change nothing, so they take no lock.
// An erasure takes none either: it can go on after the request.
const LOCKING = STRICT.filter(
  action => !/^(passkeys\.create|connections\.create|users\.erase)$/.test(action),
)

/** An owner and operator without a factor. No request of these tests changes the tenant. */
let tenant: FullTenant
beforeAll(async () => {
  tenant = await newFullTenant(server)
  const { uuid } = tenant.members.owner
  const hash = await hashPassword(PASSWORD, 'test')
  await server.sql`
    update accounts set is_operator = true, password_hash = ${hash} where id = ${uuid}
  `
  await setDisabled(server.sql, new Date())
})

function setDisabled(tx: Queryable, disabledAt: Date | null) {
  const { uuid } = tenant.members.owner
  return tx`update passkeys set disabled_at = ${disabledAt} where account_id = ${uuid}`
}

/** Returns a request of the owner for an action, in a new session that proved no factor. */
async function prepare(action: Action) {
  const owner = await newSession(server, tenant.members.owner)
  const own = /^(passkeys\.add|secondFactor\.confirm)$/.test(action)
    ? await prepareOwn(server, owner, action)
    : undefined
  const isMove = action === 'account.changeAddress'
  const contract = API.find(one => one.action === (isMove ? 'account.edit' : action))!
  const json = isMove ? { email: `new-${owner.email}` } : (own ?? BODIES[action]?.(tenant))
  const { method, body } = contract
  return () => owner.request(toPath(contract, tenant.params), { method, ...(body && { json }) })
}

test.each(LOCKING)(
  '%s is refused if a factor comes, or the session ends, meanwhile',
  async action => {
    const send = await prepare(action)
    const { uuid } = tenant.members.owner
    const late = await sendWhile(server.sql, uuid, tx => setDisabled(tx, null), send)
    expectFailure(late, 403, 'second_factor_needed')
    await setDisabled(server.sql, new Date())
    const end = (tx: Tx) => tx`delete from sessions where account_id = ${uuid}`
    const ended = await sendWhile(server.sql, uuid, end, send)
    expect(ended.status).toBe(401)
  },
)

test.each([
  ['is removed', 404, 'delete from memberships where account_id = $1'],
  ['is withdrawn', 401, 'delete from management_tokens where id = $1'],
  ['expires', 401, 'update management_tokens set expires_at = now() where id = $1'],
])('requests that wait while their caller %s make nothing', async (_, status, end) => {
  const [organization, owner] = await newTeam(server, 'owner')
  const caller =
    status === 404 ? owner : await newManagementToken(server, { accountId: owner.uuid })
  const lock = await hold(
    server.sql,
    tx => tx`select from organizations where id = ${organization.uuid} for no key update`,
  )
  const answers = [
    caller.post(`/api/organizations/${organization.id}/invites`, { role: 'viewer' }),
    caller.post(`/api/organizations/${organization.id}/projects`, { name: 'Late' }),
    caller.post(toPath(WEBHOOKS, { projectId: organization.project.id }), {
      url: 'https://93.184.216.34/late',
    }),
  ]
  await lock.untilBlocked(answers.length)
  await server.sql.unsafe(end, [caller.uuid])
  await lock.release()
  const statuses = (await Promise.all(answers)).map(answer => answer.status)
  expect(statuses).toEqual(answers.map(() => status))
})

test('parts of an action that move, destroy or raise a limit ask for the own factor', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const path = `/api/projects/${organization.project.id}`
  const key = (await owner.post(`${path}/keys`, { name: 'Key' })).body.data
  const channel = (await owner.post(`${path}/channels`, { name: 'orders' })).body.data
  await insertPasskey(server, owner)
  for (const [part, body] of [
    ['/api/me', { email: `new-${owner.email}` }],
    [path, { keepDays: 1 }],
    [`${path}/channels/${channel.id}`, { keepDays: 1 }],
    [`${path}/keys/${key.id}`, { limit: key.limit + 1 }],
    [`/api/organizations/${organization.id}`, { requiresSecondFactor: true }],
  ] as const) {
    expectFailure(await owner.patch(part, body), 403, 'second_factor_needed')
  }
  const visit = await owner.post('/api/openid/company/visits', { purpose: 'connect' })
  expectFailure(visit, 403, 'second_factor_needed')
  expect((await owner.patch(path, { name: 'Renamed' })).status).toBe(200)
})

test('docs/signing-in.md lists the actions that ask for the own factor', () => {
  const section = readSection('docs/signing-in.md', 'Permissions of each kind of session')
  const toRequests = (action: Action) =>
    API.filter(route => route.action === action).map(
      ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
    )
  // Routes that check a part of their action.
  const parts: Partial<Record<Action, string[]>> = {
    'account.changeAddress': ['PATCH /api/me'],
    'connections.create': ['POST /api/openid/{provider}/visits'],
  }
  expect(
    listRows(section).map(([action = '', requests = '', ...rest]) => [
      toCode(action),
      requests.replaceAll('`', ''),
      ...rest,
    ]),
  ).toEqual(
    STRICT.map(action => [
      action,
      [...(parts[action] ?? []), ...toRequests(action)].join(', '),
      listCredentials(action).includes('token') ? 'yes' : 'no',
    ]),
  )
})
