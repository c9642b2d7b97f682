import { expect, test } from 'bun:test'
import { SERVER, writeAudit } from '../../../src/access/audit/audit.ts'
import { createRefusals } from '../../../src/access/audit/refusals.ts'
import { createPool } from '../../../src/database/pool.ts'
import { expectFailure, expectIssues } from '../../support/answers.ts'
import { parseId } from '../../../src/base/ids.ts'
import { listAuditActions } from '../../support/audit.ts'
import { captureLog } from '../../support/log.ts'
import { until } from '../../support/until.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { createRequests } from '../../support/worlds/project.ts'
import {
  newMember,
  newOrganization,
  newSignedInAccount,
  newTeam,
} from '../../support/worlds/signed-in-account.ts'
import { withServer } from '../../support/servers/server.ts'

const server = withServer({ trustedProxies: ['127.0.0.1/32'] })

const SCOPES_TEXT = 'events:write events:read identities:write identities:read'

test('dashboard §11 the audit log lists actor, action, object, time and address, newest first', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const path = `/api/organizations/${organization.id}/audit`
  const keys = `/api/projects/${organization.project.id}/keys`
  const { body } = await admin.request(keys, {
    method: 'POST',
    json: { name: 'ci' },
    headers: { 'x-forwarded-for': '198.51.100.7', 'user-agent': 'Test/1' },
  })
  await admin.delete(`${keys}/${body.data.id}`)
  const answer = await admin.get(path)
  expect(answer.text).not.toContain(body.data.key)
  expect(answer.body.data.items.map(({ action }: { action: string }) => action)).toEqual([
    'key.revoked',
    'key.created',
  ])
  expect(answer.body.data.items[1]).toEqual({
    id: expect.stringMatching(/^aud_/),
    at: expect.any(String),
    actor: 'account',
    person: { id: admin.id, name: 'Test person' },
    key: null,
    token: null,
    action: 'key.created',
    actionText: 'created the API key',
    project: { id: organization.project.id, name: 'Test project' },
    target: body.data.id,
    targetName: 'ci',
    details: { name: 'ci', scopes: SCOPES_TEXT, limit: 100, expiresAt: null },
    detailsText: `scopes ${SCOPES_TEXT}, limit 100`,
    address: '198.51.100.7',
    browser: null,
  })
})

test('contract §12 audit entries are filtered by actor and action, and are paged', async () => {
  const [organization, one, two] = await newTeam(server, 'admin', 'owner')
  const path = `/api/organizations/${organization.id}`
  for (const account of [one, two, one]) await account.post(`${path}/invites`, { role: 'viewer' })
  await two.patch(path, { name: 'Renamed' })
  await server.sql.begin(tx =>
    writeAudit(tx, SERVER, { action: 'server.restored', organizationId: organization.uuid }),
  )
  const read = async (query: string) => {
    const { items, nextCursor } = (await one.get(`${path}/audit?${query}`)).body.data
    const lines = items.map((item: any) => `${item.person?.id ?? item.actor} ${item.action}`)
    return { lines, nextCursor }
  }
  expect((await read(`person=${one.id}`)).lines).toEqual(Array(2).fill(`${one.id} invite.created`))
  expect((await read(`person=${two.id}&action=invite.created`)).lines).toEqual([
    `${two.id} invite.created`,
  ])
  expect((await read('action=nothing')).lines).toEqual([])
  expect((await read('about=organization')).lines).toEqual([`${two.id} organization.renamed`])
  expect((await read(`about=invite&person=${two.id}`)).lines).toEqual([`${two.id} invite.created`])
  expect((await read('about=inv')).lines).toEqual([])
  const first = await read('limit=2')
  expect(first.lines).toEqual(['server server.restored', `${two.id} organization.renamed`])
  const rest = await read(`limit=3&cursor=${first.nextCursor}`)
  expect(rest).toEqual({
    lines: [one, two, one].map(({ id }) => `${id} invite.created`),
    nextCursor: null,
  })
  for (const [query, issue] of [
    ['person=1', 'person invalid_format'],
    ['cursor=1', 'cursor invalid_format'],
    ['limit=0', 'limit out_of_range'],
    ['limit=101', 'limit out_of_range'],
  ] as const) {
    expectIssues(await one.get(`${path}/audit?${query}`), issue)
  }
})

test('case 20: the audit log of the installation has no entry of an organization', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  await owner.patch(`/api/organizations/${organization.id}`, { name: 'Theirs' })
  await server.sql.begin(tx => writeAudit(tx, SERVER, { action: 'server.backedUp' }))
  const operator = await newSignedInAccount(server, { isOperator: true })
  const { items } = (await operator.get('/api/server/audit')).body.data
  expect(items[0]).toMatchObject({ action: 'server.backedUp', actor: 'server', person: null })
  expect(items.map(({ action }: any) => action)).not.toContain('organization.renamed')
})

test('contract §12 the export has the filtered log as lines of JSON, and is audited', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const name = 'a\u2028b"\\ \u0085'
  await server.sql`
    insert into audit_log (id, organization_id, actor, account_id, action, details)
    select gen_random_uuid(), ${organization.uuid}, 'account', ${admin.uuid}, 'key.created', ${JSON.stringify({ name })}::text::json
    from generate_series(1, 1001)
  `
  await server.sql.begin(tx =>
    writeAudit(tx, SERVER, { action: 'server.restored', organizationId: organization.uuid }),
  )
  const path = `/api/organizations/${organization.id}/audit`
  const file = await admin.get(`${path}/export?person=${admin.id}&about=key`)
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  const lines = file.text.split(/[\n\u0085\u2028]/)
  expect([lines.length, lines.at(-1)]).toEqual([1002, ''])
  const entries = lines.slice(0, -1).map(line => JSON.parse(line))
  expect(new Set(entries.map(({ id }) => id)).size).toBe(1001)
  expect(new Set(entries.map(({ details }) => details.name))).toEqual(new Set([name]))
  const page = (await admin.get(`${path}?about=key&limit=1`)).body.data
  expect(page.items[0]).toEqual(entries[0])
  const exports = (await admin.get(`${path}?action=audit.exported`)).body.data.items
  expect(exports.map(({ details }: any) => details)).toEqual([{ person: admin.id, about: 'key' }])
  expectIssues(await admin.get(`${path}/export?person=x`), 'person invalid_format')
})

test('contract §12 an export ends when its reader loses the right to it', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const padding = 'x'.repeat(2_000)
  await server.sql`
    insert into audit_log (id, organization_id, actor, action, details)
    select gen_random_uuid(), ${organization.uuid}, 'server', 'key.created', ${JSON.stringify({ padding })}::text::json
    from generate_series(1, 6000)
  `
  const url = `${server.url}/api/organizations/${organization.id}/audit/export`
  const response = await fetch(url, { headers: { cookie: admin.cookie } })
  const reader = response.body!.getReader()
  await reader.read()
  await server.sql`update memberships set role = 'member' where account_id = ${admin.uuid}`
  const drain = async () => {
    for (;;) if ((await reader.read()).done) return
  }
  await expect(drain()).rejects.toThrow()
})

test('reliability §11 audit entries cannot be changed, nor deleted within a year', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  await owner.patch(`/api/organizations/${organization.id}`, { name: 'n' })
  const { sql } = server
  const mine = sql`organization_id = ${organization.uuid}`
  expect(sql`update audit_log set action = 'x' where ${mine}`).rejects.toThrow('append-only')
  expect(sql`delete from audit_log where ${mine}`).rejects.toThrow('append-only')
  expect(sql`truncate audit_log`).rejects.toThrow('append-only')
  expect(await listAuditActions(sql, organization.uuid)).toEqual(['organization.renamed'])
})

test('reliability §11 a failed action leaves no entry, and an action that cannot be recorded does not happen', async () => {
  const [organization, owner] = await newTeam(server, 'owner')
  const { uuid: projectId } = organization.project
  const { sql } = server
  const count = async () => (await sql`select from api_keys where project_id = ${projectId}`).length
  const create = (name: string) =>
    owner.post(`/api/projects/${organization.project.id}/keys`, { name })
  // Fails once before the entry is written, and once at the commit after it.
  await sql`
    create function refuse() returns trigger language plpgsql as $$
    begin
      if new.name = 'late' then raise exception 'late'; end if;
      return null;
    end $$
  `
  await sql`
    create constraint trigger refuse after insert on api_keys deferrable initially deferred
    for each row execute function refuse()
  `
  expect((await create('late')).status).toBe(500)
  await sql`
    alter table audit_log add constraint refuse check (details ->> 'name' is distinct from 'unheard')
  `
  expect((await create('unheard')).status).toBe(500)
  expect([await count(), await listAuditActions(sql, organization.uuid)]).toEqual([0, []])
  expect((await create('both')).status).toBe(201)
  expect([await count(), await listAuditActions(sql, organization.uuid)]).toEqual([
    1,
    ['key.created'],
  ])
})

test('contract §12 refused requests that cannot be recorded are recorded later', async () => {
  const [organization, admin] = await newTeam(server, 'admin')
  const { uuid: organizationId } = organization
  const pool = createPool(server.databaseUrl, { name: 'test refusals', max: 1 })
  using log = captureLog()
  const refusals = createRefusals(pool, { everyMs: 10 })
  const count = (address: string, action: string) =>
    refusals.count({
      tenant: { organizationId },
      actor: { kind: 'account', accountId: admin.uuid, address },
      action,
    })
  await server.sql`
    alter table audit_log add constraint unrecorded
    check (organization_id <> ${server.sql.unsafe(`'${organizationId}'`)} or action <> 'access.refused')
  `
  count('192.0.2.1', 'one')
  count('192.0.2.1', 'two')
  await until(() => log.lines.join().includes('Refused requests could not be recorded'))
  count('192.0.2.1', 'three')
  await server.sql`alter table audit_log drop constraint unrecorded`
  await refusals.stop()
  await pool.end()
  const rows = await server.sql`
    select sum((details ->> 'count')::int)::int as count, string_agg(details ->> 'actions', ' ') as actions
    from audit_log where organization_id = ${organizationId} and action = 'access.refused'
  `
  expect(rows[0]!['count']).toBe(3)
  expect(rows[0]!['actions'].split(' ').toSorted()).toEqual(['one', 'three', 'two'])
})

// The last test, because the server writes what it has counted when it stops.
test('contract §12 refused requests are counted, and become one entry for each caller', async () => {
  const organization = await newOrganization(server)
  const path = `/api/organizations/${organization.id}`
  const viewer = await newMember(server, organization, 'viewer')
  const admin = await newMember(server, organization, 'admin')
  const owner = await newMember(server, organization, 'owner')
  const [other, stranger] = await newTeam(server, 'owner')
  const key = await createKey(server.sql, {
    projectId: organization.project.uuid,
    name: 'writer',
    scopes: ['events:write'],
  })
  const v1 = createRequests(server.url, key.token)
  for (let nth = 0; nth < 3; nth++) {
    expectFailure(await viewer.get(`${path}/audit`), 403, 'forbidden')
    expectFailure(await viewer.patch(path, { name: 'Mine' }), 403, 'forbidden')
    expectFailure(await v1.get('/v1/events'), 403, 'insufficient_scope')
    expectFailure(await stranger.get(`${path}/members`), 404, 'not_found')
  }
  expectFailure(await admin.post(`${path}/invites`, { role: 'owner' }), 403, 'forbidden')
  // None of these is a refusal of a role, a scope or a stranger.
  expectFailure(await owner.get('/api/organizations/org_1'), 404, 'not_found')
  expectFailure(await owner.delete(`${path}/members/per_1`), 404, 'not_found')
  await server.sql`update sessions set verified_at = now() - interval '1 hour'`
  expectFailure(await owner.delete(path), 403, 'verification_needed')
  const crowd = await Promise.all(
    Array.from({ length: 25 }, () => newMember(server, other, 'viewer')),
  )
  for (const member of crowd) await member.get(`/api/organizations/${other.id}/audit`)
  expect(await listAuditActions(server.sql, organization.uuid)).toEqual(['key.created'])

  await server.server.stop()
  const entries = await server.sql<[{ entry: string }]>`
    select
      concat_ws(' ', coalesce(account_id, key_id), action, details ->> 'count', details ->> 'actions', address) as entry
    from audit_log where organization_id = ${organization.uuid} and action like 'access.%'
  `
  expect(entries.map(({ entry }) => entry).sort()).toEqual(
    [
      `${viewer.uuid} access.refused 6 audit.read organization.edit 127.0.0.1`,
      `${parseId('key', key.id)} access.refused 3 events:read 127.0.0.1`,
      // It names no account of another organization as the actor, and no address.
      'access.strangerRefused 3 members.read',
      `${admin.uuid} access.refused 1 invites.create 127.0.0.1`,
    ].sort(),
  )
  const counts = await server.sql`
    select action, count(*)::int as entries, sum((details ->> 'count')::int)::int as refused
    from audit_log where organization_id = ${other.uuid} group by 1 order by 1
  `
  expect([...counts]).toEqual([
    { action: 'access.othersRefused', entries: 1, refused: 5 },
    { action: 'access.refused', entries: 20, refused: 20 },
  ])
})
