import { Value } from '@sinclair/typebox/value'
import { beforeAll, expect, test } from 'bun:test'
import { API, type ApiContract } from '../support/contracts.ts'
import { newMember, type SignedInAccount } from '../support/worlds/signed-in-account.ts'
import {
  createTokenApi,
  newManagementToken,
  type TestToken,
} from '../support/worlds/management-token.ts'
import { BODIES } from '../support/request-bodies.ts'
import { withServer } from '../support/servers/server.ts'
import { newFullTenant, toPath, type FullTenant } from '../support/worlds/full-tenant.ts'
import {
  listChanges,
  newWatchedTenant,
  type WatchedTenant,
} from '../support/worlds/watched-tenant.ts'

// Each test makes many requests.

const server = withServer({ trustedProxies: ['127.0.0.0/8'] }, { kinds: [] })
/** The tenant whose data must stay unknown and unchanged. */
let other: WatchedTenant
/** The tenant that makes all requests; it never changes either. */
let own: FullTenant
/** Tokens of the own tenant. */
let tokens: Record<'organization' | 'limited', TestToken>

beforeAll(async () => {
  own = await newFullTenant(server)
  other = await newWatchedTenant(server)
  // An owner of both tenants, whose token is limited to the project of one.
  const owner = await newMember(server, own.organization, 'owner')
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${other.organization.uuid}, ${owner.uuid}, 'owner')
  `
  await server.sql`delete from test_changes`
  tokens = {
    organization: await newManagementToken(server, {
      accountId: owner.uuid,
      organizationId: own.organization.uuid,
    }),
    limited: await newManagementToken(server, {
      accountId: owner.uuid,
      projectIds: [own.organization.project.uuid],
    }),
  }
})

test('the watch sees a row of the tenant that is inserted, updated or deleted, and no other', async () => {
  const { uuid } = other.organization
  const undone = new Error('undone')
  const change = server.sql.begin(async tx => {
    await tx`update organizations set name = 'Changed' where id <> ${uuid}`
    expect(await listChanges(tx)).toEqual([])
    await tx`update organizations set name = 'Changed' where id = ${uuid}`
    await tx`delete from invites where organization_id = ${uuid}`
    await tx`insert into projects (id, organization_id, name) values (gen_random_uuid(), ${uuid}, 'New')`
    const changes = await listChanges(tx)
    expect(changes.map(([name, ...rows]) => [name, ...rows.map(row => row !== null)])).toEqual([
      ['organizations', true, true],
      ['invites', true, false],
      ['projects', false, true],
    ])
    throw undone
  })
  await expect(change).rejects.toBe(undone)
  await other.expectUnchanged()
})

/** Providers belong to the installation, so their paths name no tenant. */
const inside = API.filter(({ path }) => path.replace(':provider', '').includes(':'))

test.each(inside.map(one => [`${one.method} ${one.path}`, one] as const))(
  "case 20: %s with another tenant's ids in one place or all of its path is refused and changes nothing",
  async (_, contract) => {
    const names = [...contract.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
    const everyId = Object.fromEntries(names.map(name => [name, other.params[name] ?? '']))
    const singly = names.length > 1 ? names.map(name => ({ [name]: everyId[name] ?? '' })) : []
    await resetRateLimits()
    for (const [kind, caller] of Object.entries({ session: own.members.owner, ...tokens })) {
      for (const ids of [...singly, everyId]) {
        const answer = await ask(caller, contract, toPath(contract, { ...own.params, ...ids }), own)
        // Some actions are refused to every token, and organizations to a limited one.
        const refused = kind === 'session' ? [404] : [403, 404]
        expect([kind, ids, refused]).toEqual([kind, ids, expect.arrayContaining([answer.status])])
        other.expectNoLeak(answer, Object.values(ids).join())
      }
    }
    if (contract.method !== 'GET') await other.expectUnchanged()
  },
)

test('case 20: no query of any list finds data of another tenant', async () => {
  for (const contract of API) {
    // The limited token is of an account that is a member of both tenants.
    const callers = inside.includes(contract)
      ? [own.members.owner, tokens.limited]
      : [own.members.owner]
    for (const [name, schema] of Object.entries(contract.query?.properties ?? {})) {
      if (schema['type'] !== 'string') continue
      const texts = ['channel', 'user', 'tag'].map(one => `${one}:"${other.names[one]}"`)
      for (const text of [...listValues(), ...(name === 'q' ? texts : [])]) {
        if (!Value.Check(schema, text)) continue
        const path = `${toPath(contract, own.params)}?${name}=${encodeURIComponent(text)}`
        for (const caller of callers) other.expectNoLeak(await caller.request(path), text)
      }
      await resetRateLimits()
    }
  }
  await other.expectUnchanged()
})

test('case 20: no body reaches data of another tenant through its ids', async () => {
  for (const contract of inside.filter(({ body }) => body)) {
    const own = await newFullTenant(server)
    const sample = BODIES[contract.action]?.(own) ?? {}
    for (const [field, schema] of Object.entries(contract.body?.properties ?? {})) {
      // Text for people names nothing.
      const isForPeople = ['name', 'title', 'label', 'description'].includes(field)
      for (const value of isForPeople ? [other.names['word']!] : listValues()) {
        const json = { ...sample, [field]: schema.type === 'array' ? [value] : value }
        // A body that the schema refuses reaches nothing.
        if (!Value.Check(contract.body!, json)) continue
        const path = toPath(contract, own.params)
        const answer = await own.members.owner.request(path, { method: contract.method, json })
        other.expectNoLeak(answer, value)
      }
    }
  }
  const webhook = { url: 'https://93.184.216.34/hook', channels: [other.params['channelId']] }
  const refused = await tokens.limited.post(toPath(WEBHOOKS, own.params), webhook)
  other.expectNoLeak(refused, other.params['channelId'])
  expect(refused.status).toBe(400)
  await other.expectUnchanged()
})

test('case 20: a token sees its own organizations and projects, and no others', async () => {
  await resetRateLimits()
  const { organization, limited } = tokens
  const projects = [{ id: own.organization.project.id, name: 'Test project' }]
  for (const token of [organization, limited]) {
    const answer = await token.get('/api/token')
    expect(answer.body.data.organizations).toEqual([
      { id: own.organization.id, name: 'Test organization', role: 'owner', projects },
    ])
    other.expectNoLeak(answer)
  }
})

test('case 20: an invite opens its own organization alone, and reveals nothing else', async () => {
  const looked = await own.members.viewer.post('/api/invites/look', { token: other.inviteToken })
  expect(looked.status).toBe(200)
  for (const [what, id] of Object.entries(other.params)) {
    expect([what, looked.text.includes(id)]).toEqual([what, false])
  }
  await other.expectUnchanged()
})

// The matrix of permissions.api.test.ts has an API key at each route.
test('case 20: a credential of /v1 is told so at /api, and one of /api at /v1', async () => {
  const { status, body } = await createTokenApi(server.url, own.key).get('/api/token')
  expect([status, body.error]).toEqual([
    401,
    'This is an API key, which opens /v1. Use a management token for /api.',
  ])
  expect((await own.members.owner.request('/v1/events')).status).toBe(401)
  const wrongly = await tokens.organization.get('/v1/events')
  expect([wrongly.status, wrongly.body]).toEqual([
    401,
    {
      error: 'Unauthorized',
      message: 'This is a management token, which opens /api. Use an API key for /v1.',
    },
  ])
})

/** Returns what may find something of the other tenant. */
const listValues = () => [
  ...new Set([...Object.values(other.params), ...Object.values(other.names)]),
]

const WEBHOOKS = API.find(({ action }) => action === 'webhooks.create')!

/** Lets each test make 300 requests with a token. */
async function resetRateLimits(): Promise<void> {
  await server.sql`delete from rate_windows`
}

function ask(
  account: Pick<SignedInAccount, 'request'>,
  contract: ApiContract,
  path: string,
  own: FullTenant,
) {
  const json = BODIES[contract.action]?.(own)
  if (contract.body && !json) throw new Error(`No test knows a body for ${contract.action}`)
  return account.request(path, { method: contract.method, ...(contract.body && { json }) })
}
