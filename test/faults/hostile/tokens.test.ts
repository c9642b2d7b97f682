import { beforeAll, describe, expect, test } from 'bun:test'
import { createResetLink } from '../../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../../src/access/audit/audit.ts'
import { MANAGEMENT_TOKEN } from '../../../src/base/token-form.ts'
import { listBlocked } from '../../support/database-lock.ts'
import { newAddress } from '../../support/worlds/browser.ts'
import {
  createTokenApi,
  newManagementToken,
  type TestToken,
} from '../../support/worlds/management-token.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import {
  createApi,
  newMember,
  newOrganization,
  type SignedInAccount,
  type TestOrganization,
} from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'
import { until } from '../../support/until.ts'

// Attacks with management tokens: ended, limited, guessed and misplaced ones.
//
// Covered elsewhere: every route with every kind of token (api/roles, api/tenants-management), and
// the rights of the creator of a token (api/tokens).

const server = withServer({ trustedProxies: ['127.0.0.0/8'] }, { kinds: [] })
let organization: TestOrganization
let owner: SignedInAccount
beforeAll(async () => {
  organization = await newOrganization(server)
  owner = await newMember(server, organization, 'owner')
})

const ofOrganization = () => `/api/organizations/${organization.id}`
const ofProject = () => `/api/projects/${organization.project.id}`
const newToken = (options: Partial<Parameters<typeof newManagementToken>[1]> = {}) =>
  newManagementToken(server, { accountId: owner.uuid, ...options })

describe('a token that ends', () => {
  const ENDS: [string, (token: TestToken) => Promise<unknown>][] = [
    ['withdrawn', ({ uuid }) => server.sql`delete from management_tokens where id = ${uuid}`],
    [
      'expired',
      ({ uuid }) => server.sql`update management_tokens set expires_at = now() where id = ${uuid}`,
    ],
  ]

  test.each(ENDS)('%s while its requests wait makes nothing', async (_, end) => {
    const token = await newToken()
    const requests: [string, object][] = [
      [`${ofOrganization()}/invites`, { role: 'viewer' }],
      [`${ofOrganization()}/projects`, { name: 'Late' }],
      [`${ofProject()}/webhooks`, { url: 'https://93.184.216.34/late' }],
    ]
    const waiting = await server.sql.begin(async tx => {
      await tx`select from organizations where id = ${organization.uuid} for no key update`
      const answers = requests.map(([path, json]) => token.post(path, json))
      await until(async () => (await listBlocked(server.sql)).length === requests.length)
      await end(token)
      return { answers }
    })
    const answers = await Promise.all(waiting.answers)
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
      requests.map(() => [401, 'signed_out']),
    )
    expect((await token.get(ofProject())).status).toBe(401)
  })

  test('takes the invites that it made with it, and the audit log has each', async () => {
    const account = await newMember(server, organization, 'owner')
    const made: string[] = []
    const look = (url: string) =>
      createApi(server.url).request('/api/invites/look', {
        method: 'POST',
        json: { token: url.split('#')[1] },
        headers: { 'x-forwarded-for': newAddress() },
      })
    const invite = async (maker: Pick<TestToken, 'post'>) => {
      const { id, url } = (await maker.post(`${ofOrganization()}/invites`, { role: 'viewer' })).body
        .data
      expect((await look(url)).status).toBe(200)
      return { id, url }
    }
    const own = await invite(account)
    const [personal, shared, kept] = [
      await newToken({ accountId: account.uuid }),
      await newToken({ accountId: account.uuid, organizationId: organization.uuid }),
      await newToken({ accountId: account.uuid }),
    ]
    for (const [token, path] of [
      [personal, '/api/tokens'],
      [shared, `${ofOrganization()}/tokens`],
    ] as const) {
      const { id, url } = await invite(token)
      made.push(id)
      expect((await account.delete(`${path}/${token.id}`)).status).toBe(200)
      expect((await look(url)).status).toBe(404)
    }
    const last = await invite(kept)
    made.push(last.id, own.id)
    expect((await look(own.url)).status).toBe(200)
    // A reset of the password ends all tokens, and all invites that the account has made.
    const link = await server.sql.begin(tx => createResetLink(tx, COMMAND_LINE, account.uuid))
    const json = { token: link.token, password: 'gravel monsoon nineteen' }
    expect((await createApi(server.url).post('/api/reset', json)).status).toBe(200)
    expect((await look(last.url)).status).toBe(404)
    expect((await look(own.url)).status).toBe(404)
    const entries = await server.sql<{ target: string }[]>`
      select target from audit_log
      where organization_id = ${organization.uuid} and action = 'invite.withdrawn' order by id
    `
    expect(entries.map(({ target }) => target).toSorted()).toEqual(made.toSorted())
  })

  test('in a day leaves no invite that is valid for a week', async () => {
    const token = await newToken({ expiresIn: '1 day' })
    const { body } = await token.post(`${ofOrganization()}/invites`, { role: 'viewer' })
    const days = (Date.parse(body.data.expiresAt) - Date.now()) / 86_400_000
    expect(days).toBeWithin(0.9, 1.01)
  })
})

describe('a token that is limited', () => {
  test('to a project finds no other one by any spelling of its id', async () => {
    const added = await owner.post(`${ofOrganization()}/projects`, { name: 'Second' })
    const token = await newToken({ projectIds: [organization.project.uuid] })
    const [own, other] = [organization.project.id, String(added.body.data.id)]
    expect((await token.get(`/api/projects/${own}`)).status).toBe(200)
    for (const id of [
      other,
      other.toUpperCase(),
      encodeURIComponent(`${own}/../${other}`),
      `${own}%2f..%2f${other}`,
      `${own}/../${other}`,
      `${own},${other}`,
    ]) {
      expect([id, (await token.get(`/api/projects/${id}/channels`)).status]).toEqual([id, 404])
    }
    for (const path of ['', '/members', '/audit', '/invites']) {
      expect((await token.get(ofOrganization() + path)).status).toBe(403)
    }
  })
})

test('guesses at tokens are slowed for their network, and a valid token there is not', async () => {
  const [from, valid] = [newAddress(), await newToken()]
  const ask = async (secret: string) => {
    const startedMs = performance.now()
    const api = createTokenApi(server.url, secret, { 'x-forwarded-for': from })
    const { status } = await api.get('/api/token')
    return { status, ms: performance.now() - startedMs }
  }
  expect((await ask(valid.secret)).status).toBe(200)
  const guesses = await Promise.all(
    Array.from({ length: 62 }, () => ask(MANAGEMENT_TOKEN.newToken())),
  )
  expect(guesses.map(({ status }) => status)).toEqual(guesses.map(() => 401))
  // The guesses beyond 60 in a minute wait for a second.
  expect(guesses.filter(({ ms }) => ms >= 1_000).length).toBeGreaterThanOrEqual(2)
  const [again, guess] = await Promise.all([ask(valid.secret), ask(MANAGEMENT_TOKEN.newToken())])
  expect([again.status, guess.status]).toEqual([200, 401])
  expect(again.ms).toBeLessThan(guess.ms)
})

test('a token is taken from one Authorization header alone', async () => {
  const { secret } = await newToken()
  const ended = MANAGEMENT_TOKEN.newToken()
  const send = async (lines: string[], path = '/api/token') => {
    const head = toRequest(`GET ${path} HTTP/1.1`, [`Host: ${new URL(server.url).host}`, ...lines])
    return (await sendRaw(server.url, head))?.status
  }
  expect(await send([`Authorization: Bearer ${secret}`])).toBe(200)
  for (const lines of [
    [`Authorization: Bearer ${secret}`, `Authorization: Bearer ${secret}`],
    [`Authorization: Bearer ${secret}`, `Authorization: Bearer ${ended}`],
    [`Authorization: Bearer ${ended}`, `Authorization: Bearer ${secret}`],
    [`Authorization: Bearer ${secret}, Bearer ${secret}`],
    [`Authorization: Bearer ${secret} ${secret}`],
    [`X-Authorization: Bearer ${secret}`],
    [`Cookie: tidings=${secret}`],
  ]) {
    expect([lines, await send(lines)]).toEqual([lines, 401])
  }
  for (const name of ['access_token', 'token', 'api_key', 'authorization']) {
    expect([name, await send([], `/api/token?${name}=${secret}`)]).toEqual([name, 401])
  }
})
