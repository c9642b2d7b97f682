import { expect, test } from 'bun:test'
import { newToken } from '../../../src/access/keys/token.ts'
import { newSecret } from '../../../src/access/guard/secret.ts'
import { newAddress } from '../../support/worlds/browser.ts'
import { revokeKey } from '../../support/worlds/keys.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { newProject } from '../../support/worlds/project.ts'
import { newFullTenant } from '../../support/worlds/full-tenant.ts'
import { withServer } from '../../support/servers/server.ts'

// Response times that reveal whether something exists. Covered elsewhere: sign-in with a wrong
// password (api/sign-in).

const server = withServer({ trustedProxies: ['127.0.0.0/8'] })

const ROUNDS = 60
/**
 * More than a busy machine adds to two interleaved medians; hashing a password takes far longer.
 */
const FACTOR = 1.6
const SLACK_MS = 1

/** Expects two functions, called in turn, to take about the same time. */
async function expectAlike(one: () => Promise<unknown>, other: () => Promise<unknown>) {
  const times: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    // The order alternates, too.
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const startedMs = performance.now()
      await (at === 0 ? one() : other())
      times[at].push(performance.now() - startedMs)
    }
  }
  const [a, b] = times.map(all => all.toSorted((x, y) => x - y)[all.length >> 1]!)
  expect(a!).toBeLessThan(b! * FACTOR + SLACK_MS)
  expect(b!).toBeLessThan(a! * FACTOR + SLACK_MS)
}

const ask = async (path: string, headers: Record<string, string>, json?: object) => {
  const response = await fetch(`${server.url}${path}`, {
    headers: {
      'x-forwarded-for': newAddress(),
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/json',
      ...headers,
    },
    ...(json && { method: 'POST', body: JSON.stringify(json) }),
  })
  await response.text()
  return response.status
}

test('a revoked key takes as long to refuse as an unknown one', async () => {
  const { id, key, keyId } = await newProject(server)
  await revokeKey(server.sql, id, keyId)
  const by = async (token: string) => {
    expect(await ask('/v1/me', { authorization: `Bearer ${token}` })).toBe(401)
  }
  await expectAlike(
    () => by(key),
    () => by(newToken()),
  )
})

test("another tenant's ids take as long to refuse as unknown ones", async () => {
  const other = await newFullTenant(server)
  const organization = await newOrganization(server)
  const { cookie } = await newMember(server, organization, 'owner')
  const absent = organization.project.id.slice(0, -8)
  const get = async (path: string) => expect(await ask(path, { cookie })).toBe(404)
  await expectAlike(
    () => get(`/api/projects/${other.params['projectId']}/events/${other.params['eventId']}`),
    () => get(`/api/projects/${absent}00000000/events/${other.params['eventId']}`),
  )
})

test('an expired invite takes as long to refuse as an unknown one', async () => {
  const { inviteToken } = await newFullTenant(server)
  await server.sql`update invites set expires_at = now() - interval '1 day'`
  const look = async (token: string) => {
    expect(await ask('/api/invites/look', {}, { token })).toBe(404)
  }
  await expectAlike(
    () => look(inviteToken),
    () => look(newSecret(256)),
  )
})
