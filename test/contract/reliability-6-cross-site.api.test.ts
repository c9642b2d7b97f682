import { beforeAll, expect, test } from 'bun:test'
import { API } from '../support/contracts.ts'
import {
  newOrganization,
  newSignedInAccount,
  type SignedInAccount,
} from '../support/worlds/signed-in-account.ts'
import { withSharedServer } from '../support/servers/server.ts'

const server = withSharedServer()
let account: SignedInAccount
let ids: Record<string, string>
beforeAll(async () => {
  // The operator: an action that is refused to the operator is refused to everyone.
  account = await newSignedInAccount(server, { isOperator: true })
  const organization = await newOrganization(server)
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${organization.uuid}, ${account.uuid}, 'owner')
  `
  ids = { organizationId: organization.id, projectId: organization.project.id }
})

const UNSAFE = API.filter(({ method }) => method !== 'GET')

/** Headers that browsers send from a foreign page; `{port}` is the port of the server. */
const FOREIGN: Record<string, string>[] = [
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-site': '' },
  { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:{port}' },
  { 'sec-fetch-site': 'same-site', origin: 'http://localhost:{port}' },
  { 'sec-fetch-site': 'none', origin: 'http://localhost:{port}' },
  { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
  { 'sec-fetch-site': 'same-origin', origin: 'null' },
  {},
  { referer: 'http://localhost:{port}/' },
  { origin: 'null' },
  { origin: '' },
  { origin: 'https://evil.example' },
  { origin: 'http://localhost:1' },
  { origin: 'http://localhost' },
  { origin: 'https://localhost:{port}' },
  { origin: 'http://localhost:{port}.evil.example' },
  { origin: 'http://localhost:{port}@evil.example' },
  { origin: 'http://evil.example/http://localhost:{port}' },
  { origin: 'http://localhost:{port}/' },
  { origin: 'http://localhost:{port}, https://evil.example' },
]

function send(route: string, headers: Record<string, string>, body: string | null = '{}') {
  const [method = '', path = ''] = route.split(' ')
  const filled = path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? 'none')
  const port = String(server.server.port)
  return fetch(`${server.url}${filled}`, {
    method,
    headers: {
      cookie: account.cookie,
      'content-type': 'application/json',
      ...Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value.replaceAll('{port}', port)]),
      ),
    },
    body,
  })
}

/**
 * Returns all rows that an action could have changed. The server itself removes what another file
 * of tests has deleted, and notes what it does.
 */
async function readState(): Promise<string> {
  const [row] = await server.sql<[{ state: string }]>`
    select md5(
      (select string_agg(p::text, ',' order by p.id) from accounts p)
      || (select string_agg(s.id::text || s.hash::text, ',' order by s.id) from sessions s)
      || (select string_agg(o::text, ',' order by o.id) from organizations o where o.deleted_at is null)
      || (select string_agg(r::text, ',' order by r.id) from projects r where r.deleted_at is null)
      || (select count(*) from audit_log where actor <> 'server')
    ) as state
  `
  return row.state
}

/** Types that browsers send without a preflight request. */
const SIMPLE = [
  ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
  ...['text/plain; application/json', ''],
]

test.each(
  UNSAFE.map(({ method, path, body }) => [`${method} ${path}`, body !== undefined] as const),
)(
  'reliability §6 %s is refused to foreign pages, and with bodies of forms',
  async (route, hasBody) => {
    const before = await readState()
    // One guard reads these headers. One route tries all of them.
    const isFirst = route === 'POST /api/session'
    for (const headers of isFirst ? FOREIGN : [FOREIGN[0]!, {}, { origin: 'null' }]) {
      const response = await send(route, headers)
      const { code } = (await response.json()) as { code: string }
      expect([headers, response.status, code]).toEqual([headers, 403, 'cross_site'])
      expect(response.headers.getSetCookie()).toEqual([])
    }
    for (const type of hasBody ? SIMPLE : []) {
      const response = await send(route, { 'sec-fetch-site': 'same-origin', 'content-type': type })
      expect([type, response.status]).toEqual([type, 415])
    }
    expect(await readState()).toBe(before)
  },
)

test('reliability §6 our own pages are accepted, also with the headers of old browsers', async () => {
  for (const headers of [
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'same-origin', origin: 'http://localhost:{port}' },
    { origin: 'http://localhost:{port}' },
    { origin: 'http://127.0.0.1:{port}' },
  ]) {
    expect((await send('POST /api/session/verify', headers)).status).toBe(400)
  }
})
