import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../support/worlds/keys.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { listAuditEntries } from '../../support/audit.ts'
import { createRequests } from '../../support/worlds/project.ts'
import { hashToken, MANAGEMENT_TOKEN } from '../../../src/base/token-form.ts'
import {
  createTokenApi,
  newManagementToken,
  type TestToken,
} from '../../support/worlds/management-token.ts'
import { withServer } from '../../support/servers/server.ts'
import {
  addMember,
  newInvite,
  newMember,
  newOrganization,
  newSession,
  newSignedInAccount,
  newTeam,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'

const server = withServer({ trustedProxies: ['127.0.0.0/8'] }, { kinds: [] })
let organization: TestOrganization
let owner: SignedInAccount
beforeAll(async () => {
  organization = await newOrganization(server)
  owner = await newMember(server, organization, 'owner')
})

const ofOrganization = () => `/api/organizations/${organization.id}`
const ofProject = () => `/api/projects/${organization.project.id}`

/** Creates a token with a request. Returns the data of the answer. */
async function create(
  account: SignedInAccount,
  body: object = {},
  path = '/api/tokens',
): Promise<any> {
  const answer = await account.post(path, { name: 'Deploy', role: 'admin', ...body })
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  return answer.body.data
}

const getStatus = async (token: Pick<TestToken, 'get'>, path = ofProject()) =>
  (await token.get(path)).status

describe('creation', () => {
  test('shows the secret once, stores its hash, and lets it expire after 90 days', async () => {
    const { token, ...created } = await create(owner)
    expect(MANAGEMENT_TOKEN.isWellFormed(token)).toBe(true)
    const listed = (await owner.get('/api/tokens')).body.data.items
    expect(listed).toEqual([created])
    expect(created).toMatchObject({
      name: 'Deploy',
      role: 'admin',
      prefix: 'tdm_',
      lastFour: token.slice(-4),
      projects: null,
      lastUsedAt: null,
      isExpired: false,
      createdBy: { id: owner.id, name: 'Test person' },
    })
    const days = (Date.parse(created.expiresAt) - Date.parse(created.createdAt)) / 86_400_000
    expect(days).toBeCloseTo(90, 1)
    const [row] = await server.sql`
      select to_jsonb(t)::text as row from management_tokens t
      where hash = decode(${hashToken(token)}, 'hex')
    `
    expect(row?.['row']).not.toContain(token.slice(4, 30))
  })

  test('requires a role that the creator has, here or somewhere', async () => {
    const member = await newMember(server, organization, 'member')
    const admin = await newMember(server, organization, 'admin')
    const personal = await member.post('/api/tokens', { name: 'Deploy', role: 'admin' })
    const shared = await admin.post(`${ofOrganization()}/tokens`, { name: 'Deploy', role: 'owner' })
    expect([personal.status, personal.body.code]).toEqual([403, 'forbidden'])
    expect([shared.status, shared.body.code]).toEqual([403, 'forbidden'])
  })

  test('refuses projects that the creator cannot open, and those of other organizations', async () => {
    const elsewhere = await newOrganization(server)
    const both = await newMember(server, organization, 'owner')
    await addMember(server, elsewhere, both, 'owner')
    const ask = (account: SignedInAccount, path: string) =>
      account.post(path, { name: 'Deploy', role: 'viewer', projects: [elsewhere.project.id] })
    const answers = [
      await ask(owner, '/api/tokens'),
      await ask(both, `${ofOrganization()}/tokens`),
      await ask(both, '/api/tokens'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 201])
  })

  test('has bounds: 1 to 365 days, and 50 tokens', async () => {
    const account = await newMember(server, organization, 'viewer')
    for (const expiresInDays of [0, 366, null]) {
      const body = { name: 'Deploy', role: 'viewer', expiresInDays }
      expect((await account.post('/api/tokens', body)).status).toBe(400)
    }
    await server.sql`
      insert into management_tokens (
        id, hash, last_four, name, account_id, role, is_multi_factor, expires_at
      )
      select gen_random_uuid(), sha256(n::text::bytea), '0000', 'Many', ${account.uuid}, 'viewer',
        false,
        now() + interval '1 day'
      from generate_series(1, 50) as n
    `
    const answer = await account.post('/api/tokens', { name: 'Deploy', role: 'viewer' })
    expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
  })
})

describe('a request with a token', () => {
  test('needs no Origin, and ignores cookies', async () => {
    const viewer = await newMember(server, organization, 'viewer')
    const { token } = await create(owner)
    const change = (bearer: string, cookie: string) =>
      createTokenApi(server.url, bearer, { cookie }).patch(ofProject(), { name: 'Shop' })
    expect((await change(token, viewer.cookie)).status).toBe(200)
    const invalid = await change(MANAGEMENT_TOKEN.newToken(), owner.cookie)
    expect([invalid.status, invalid.body.code]).toEqual([401, 'signed_out'])
    expect(invalid.headers.get('www-authenticate')).toBe('Bearer')
    const none = await createTokenApi(server.url, '', { cookie: owner.cookie }).get('/api/me')
    expect(none.status).toBe(401)
  })

  test('leaves other schemes to a proxy, and then needs the cookie and the Origin', async () => {
    const headers = { authorization: 'Basic YTpi', cookie: owner.cookie }
    const read = await fetch(`${server.url}/api/me`, { headers })
    const changed = await fetch(`${server.url}/api/sessions`, { method: 'DELETE', headers })
    expect([read.status, changed.status]).toEqual([200, 403])
  })

  test('has it in one Authorization header, and is told so with the token in the URL', async () => {
    const { token } = await create(owner)
    const ended = MANAGEMENT_TOKEN.newToken()
    const send = (lines: string[], path = '/api/token') => {
      const head = [`Host: ${new URL(server.url).host}`, ...lines]
      return sendRaw(server.url, toRequest(`GET ${path} HTTP/1.1`, head))
    }
    expect((await send([`Authorization: Bearer ${token}`]))?.status).toBe(200)
    for (const lines of [
      [`Authorization: Bearer ${token}`, `Authorization: Bearer ${token}`],
      [`Authorization: Bearer ${token}`, `Authorization: Bearer ${ended}`],
      [`Authorization: Bearer ${ended}`, `Authorization: Bearer ${token}`],
      [`Authorization: Bearer ${token}, Bearer ${token}`],
      [`Authorization: Bearer ${token} ${token}`],
      [`X-Authorization: Bearer ${token}`],
      [`Cookie: tidings=${token}`],
    ]) {
      expect([lines, (await send(lines))?.status]).toEqual([lines, 401])
    }
    for (const name of ['access_token', 'token', 'api_key', 'authorization']) {
      const answer = await send([], `/api/token?${name}=${token}`)
      expect([name, answer?.status]).toEqual([name, 401])
      expect(answer?.body.error).toContain('Authorization')
    }
  })

  test('counts against 300 in 60 seconds, once each', async () => {
    const token = await newManagementToken(server, { accountId: owner.uuid })
    const first = await token.patch(ofProject(), { name: 'Shop' })
    expect(first.headers.get('x-ratelimit-remaining')).toBe('299')
    await server.sql`update rate_windows set used = 299 where key_id = ${token.uuid}`
    expect((await token.get(ofProject())).headers.get('x-ratelimit-remaining')).toBe('0')
    const refused = await token.get(ofProject())
    expect([refused.status, refused.headers.get('x-ratelimit-limit')]).toEqual([429, '300'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('is in the audit log under the names of the token and its creator, and is its last use', async () => {
    const { token, id } = await create(owner, { name: 'Audited' })
    await createTokenApi(server.url, token).patch(ofProject(), { name: 'Shop' })
    const [entry] = (await owner.get(`${ofOrganization()}/audit?action=project.edited`)).body.data
      .items
    expect(entry).toMatchObject({
      actor: 'token',
      token: { id, name: 'Audited' },
      person: { id: owner.id },
    })
    const { items } = (await owner.get('/api/tokens')).body.data
    expect(items.find((one: any) => one.id === id).lastUsedAt).not.toBeNull()
  })

  test('with an organization token reads no settings of its creator', async () => {
    const { id: projectId, uuid } = organization.project
    const key = await createKey(server.sql, { projectId: uuid, name: 'Test' })
    const v1 = createRequests(server.url, key.token)
    const event = await v1.post('/v1/events', { channelName: 'orders', title: 'One' })
    const path = `/api/projects/${projectId}/channels/${event.body.data.channelId}`
    await owner.put(`${path}/notifications`, { state: 'mute' })
    const shared = await create(owner, { role: 'viewer' }, `${ofOrganization()}/tokens`)
    const personal = await create(owner, { role: 'viewer' })
    const tokens = [shared, personal].map(({ token }) => createTokenApi(server.url, token))
    const answers = await Promise.all(tokens.map(token => token.get(path)))
    expect(answers.map(({ body }) => body.data.isMuted)).toEqual([false, true])
  })
})

describe('a token acts with the present rights of its creator', () => {
  test('a lower role of the creator lowers the token at once', async () => {
    const admin = await newMember(server, organization, 'admin')
    const personal = await create(admin)
    const shared = await create(admin, {}, `${ofOrganization()}/tokens`)
    const tokens = [personal, shared].map(({ token }) => createTokenApi(server.url, token))
    const keys = `${ofProject()}/keys`
    for (const token of tokens) expect(await getStatus(token, keys)).toBe(200)
    await owner.patch(`${ofOrganization()}/members/${admin.id}`, { role: 'viewer' })
    for (const token of tokens) {
      expect([await getStatus(token, keys), await getStatus(token)]).toEqual([403, 200])
    }
  })

  test('a removed creator ends the organization token for ever, and the reach of the personal one', async () => {
    const admin = await newMember(server, organization, 'admin')
    const personal = createTokenApi(server.url, (await create(admin)).token)
    const { token, id } = await create(admin, {}, `${ofOrganization()}/tokens`)
    const shared = createTokenApi(server.url, token)
    await owner.delete(`${ofOrganization()}/members/${admin.id}`)
    expect([await getStatus(personal), await getStatus(shared)]).toEqual([404, 401])
    await addMember(server, organization, admin, 'admin')
    expect([await getStatus(personal), await getStatus(shared)]).toEqual([200, 401])
    const { items } = (await owner.get(`${ofOrganization()}/tokens`)).body.data
    expect(items.map((one: any) => one.id)).not.toContain(id)
  })

  test('a deleted project does not lift the limit of a token', async () => {
    const added = await owner.post(`${ofOrganization()}/projects`, { name: 'Second' })
    const path = `/api/projects/${added.body.data.id}`
    const { token } = await create(owner, { projects: [added.body.data.id] })
    const limited = createTokenApi(server.url, token)
    expect([await getStatus(limited, path), await getStatus(limited)]).toEqual([200, 404])
    await owner.delete(path)
    expect([await getStatus(limited, path), await getStatus(limited)]).toEqual([404, 404])
    expect((await limited.get('/api/token')).body.data.organizations).toEqual([])
  })

  test('an organization that requires a second factor refuses tokens of sessions without one', async () => {
    const [other, creator] = await newTeam(server, 'owner')
    const make = async (isMultiFactor: boolean) => {
      const session = await newSession(server, creator, { isMultiFactor })
      return createTokenApi(server.url, (await create(session)).token)
    }
    const [weak, strong] = [await make(false), await make(true)]
    await server.sql`
      update organizations set requires_second_factor = true where id = ${other.uuid}
    `
    const path = `/api/projects/${other.project.id}`
    expect((await weak.get(path)).body.code).toBe('second_factor_needed')
    expect((await strong.get(path)).status).toBe(200)
    const [shown, all] = [await weak.get('/api/token'), await strong.get('/api/token')]
    expect(shown.body.data.organizations).toMatchObject([{ id: other.id, projects: [] }])
    expect(all.body.data.organizations).toMatchObject([{ projects: [{ id: other.project.id }] }])
    const lifted = await strong.patch(`/api/organizations/${other.id}`, {
      requiresSecondFactor: false,
    })
    expect([lifted.status, lifted.body.code]).toEqual([403, 'forbidden'])
  })

  test('nobody is invited above the role of the token, or for longer than it lasts', async () => {
    const { token } = await create(owner, { role: 'admin', expiresInDays: 1 })
    const invite = (role: string) =>
      createTokenApi(server.url, token).post(`${ofOrganization()}/invites`, { role })
    expect((await invite('owner')).status).toBe(403)
    const { status, body } = await invite('admin')
    const days = (Date.parse(body.data.expiresAt) - Date.now()) / 86_400_000
    expect([status, Math.round(days)]).toEqual([201, 1])
  })
})

describe('the end of a token', () => {
  test('by an admin takes the invites that it made with it, and the audit log has them', async () => {
    const admin = await newMember(server, organization, 'admin')
    const path = `${ofOrganization()}/tokens`
    const { token, id } = await create(owner, { role: 'owner' }, path)
    const api = createTokenApi(server.url, token)
    const [made, kept] = [
      await newInvite(api, organization, { role: 'viewer' }),
      await newInvite(owner, organization, { role: 'viewer' }),
    ]
    const look = async ({ token }: { token: string }) =>
      (await owner.post('/api/invites/look', { token })).status
    expect((await admin.delete(`${path}/${id}`)).status).toBe(200)
    expect(await getStatus(api)).toBe(401)
    expect([await look(made), await look(kept)]).toEqual([404, 200])
    const entries = await listAuditEntries(server.sql, organization.uuid)
    const withdrawn = entries.filter(({ action }) => action === 'invite.withdrawn')
    expect(withdrawn.map(({ target }) => target)).toEqual([made.id])
  })

  test('an expired one is listed as expired', async () => {
    const account = await newSignedInAccount(server)
    const token = await newManagementToken(server, { accountId: account.uuid, expiresIn: '-1 s' })
    const { items } = (await account.get('/api/tokens')).body.data
    expect(items).toMatchObject([{ id: token.id, isExpired: true }])
  })
})
