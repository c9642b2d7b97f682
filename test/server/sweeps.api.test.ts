import { expect, test } from 'bun:test'
import { createResetLink } from '../../src/access/sign-in/reset-links.ts'
import { COMMAND_LINE } from '../../src/access/audit/audit.ts'
import { toArray } from '../../src/database/arrays.ts'
import { createPool } from '../../src/database/pool.ts'
import { newId, toId } from '../../src/base/ids.ts'
import { sweep, SWEEPS } from '../../src/server/sweeps.ts'
import { newAccount } from '../support/worlds/browser.ts'
import { newOrganization } from '../support/worlds/signed-in-account.ts'
import { withServer } from '../support/servers/server.ts'

type Account = Awaited<ReturnType<typeof newAccount>>

const server = withServer()

const TABLES = [
  ...['sessions', 'setup_links', 'reset_links', 'invites', 'known_devices', 'sign_in_failures'],
  ...['key_usage', 'audit_log', 'acknowledgements'],
]
const EXPIRED = ['member.resetLinkExpired', 'reset.expired']

/** Sweeps the account tables until nothing expired is left; returns the number of deleted rows. */
async function sweepAll(): Promise<number> {
  const pool = createPool(server.databaseUrl, { name: 'test', max: 1 })
  let swept = 0
  for (const one of SWEEPS.filter(({ table }) => TABLES.includes(table))) {
    for (let deleted = -1; deleted !== 0; swept += deleted) deleted = await sweep(pool, one)
  }
  await pool.end()
  return swept
}

test('contract §11 the sweep deletes sessions, links, invites and failures once they expire, and not before', async () => {
  const { sql } = server
  const account = await newAccount(server)
  const organization = await newOrganization(server)
  await sql`delete from setup_links`
  // The last one was used recently, but is older than the maximum age of a session.
  for (const [created, seen, isInstalled] of [
    ...[false, true].flatMap(isInstalled =>
      ['7 days 1 minute', '6 days 23 hours'].map(age => [age, age, isInstalled] as const),
    ),
    ['31 days', '0', false] as const,
  ]) {
    await sql`
      insert into sessions (id, hash, account_id, is_installed, method, created_at, last_seen_at, address, user_agent)
      values (
        ${newId('ses').uuid}, sha256(gen_random_uuid()::text::bytea), ${account.uuid}, ${isInstalled}, 'password',
        now() - ${created}::interval, now() - ${seen}::interval, '', ''
      )
    `
  }
  for (const age of ['1 minute', '-1 minute']) {
    const hash = sql`sha256(gen_random_uuid()::text::bytea)`
    await sql`insert into setup_links values (${hash}, now() - ${age}::interval)`
    await sql`
      insert into reset_links (id, hash, account_id, expires_at)
      values (${newId('rst').uuid}, ${hash}, ${account.uuid}, now() - ${age}::interval)
    `
    await sql`
      insert into invites (id, organization_id, hash, role, invited_by, expires_at)
      values (
        ${newId('inv').uuid}, ${organization.uuid}, ${hash}, 'viewer', ${account.uuid},
        now() - ${age}::interval
      )
    `
    await sql`
      insert into known_devices (hash, account_id, last_used_at)
      values (${hash}, ${account.uuid}, now() - interval '400 days' - ${age}::interval)
    `
    await sql`
      insert into sign_in_failures (account, lane, failures, last_at)
      values (${hash}, ${hash}, 9, now() - interval '1 day' - ${age}::interval)
    `
    await sql`
      insert into key_usage (key_id, hour, requests)
      select id, now() - interval '90 days' - ${age}::interval, 1
      from api_keys
      limit 1
    `
    await sql`
      insert into audit_log (id, at, actor, action, details)
      values (${newId('aud').uuid}, now() - interval '1 year' - ${age}::interval, 'server', 'x', '{}')
    `
    await sql`
      insert into acknowledgements (project_id, thread_seq, id, event_id, at)
      select ${organization.project.uuid}, count(*), new_delivery_id(), new_delivery_id(), now() - interval '90 days' - ${age}::interval
      from acknowledgements
    `
  }
  const before = await count()
  expect(await sweepAll()).toBe(11)
  // The sweep of a reset link adds an audit entry.
  const changes: Record<string, number> = { sessions: -3, audit_log: 0 }
  const left = Object.entries(before).map(([table, n]) => [table, n + (changes[table] ?? -1)])
  expect(await count()).toEqual(Object.fromEntries(left))
})

test('reliability §6 at most 100,000 counts of failed sign-ins are kept: those with the most failures', async () => {
  await server.sql`truncate sign_in_failures`
  await server.sql`
    insert into sign_in_failures (account, lane, failures, last_at)
    select sha256(n::text::bytea), sha256('x'), least(n, 2), now()
    from generate_series(0, 100600) as n
  `
  expect(await sweepAll()).toBe(601)
  const [row] =
    await server.sql`select min(failures) as least, count(*)::int as rows from sign_in_failures`
  expect(row).toEqual({ least: 2, rows: 100_000 })
  await server.sql`truncate sign_in_failures`
})

test('reliability §6 an expired reset link gets one audit entry, whoever made it and whatever deletes it', async () => {
  const { sql } = server
  const organization = await newOrganization(server)
  const accounts = await Promise.all([0, 1, 2, 3].map(() => newAccount(server)))
  const [owner, swept, replaced, ofCommandLine] = accounts as [Account, Account, Account, Account]
  for (const { uuid } of accounts) {
    await sql`
      insert into memberships (organization_id, account_id, role)
      values (${organization.uuid}, ${uuid}, ${uuid === owner.uuid ? 'owner' : 'viewer'})
    `
  }
  const creator = { accountId: owner.uuid, organizationId: organization.uuid }
  for (const { uuid } of [swept, replaced]) {
    await sql.begin(tx => createResetLink(tx, COMMAND_LINE, uuid, creator))
  }
  await sql.begin(tx => createResetLink(tx, COMMAND_LINE, ofCommandLine.uuid))
  await sql`update reset_links set expires_at = now() - interval '1 second'`
  await sql.begin(tx => createResetLink(tx, COMMAND_LINE, replaced.uuid))
  await sweepAll()
  await sweepAll()
  const targets = [swept, replaced, ofCommandLine].map(({ uuid }) => toId('per', uuid))
  const entries = await sql<{ entry: string; n: number }[]>`
    select action || ' ' || target || ' ' || (organization_id is not null) as entry, count(*)::int as n
    from audit_log
    where action = any(${toArray(EXPIRED)}::text[]) and target = any(${toArray(targets)}::text[])
      and actor = 'server'
    group by 1
  `
  expect(Object.fromEntries(entries.map(({ entry, n }) => [entry, n]))).toEqual({
    [`reset.expired ${targets[0]} false`]: 1,
    [`reset.expired ${targets[1]} false`]: 1,
    [`reset.expired ${targets[2]} false`]: 1,
    [`member.resetLinkExpired ${targets[0]} true`]: 1,
    [`member.resetLinkExpired ${targets[1]} true`]: 1,
  })
})

async function count(): Promise<Record<string, number>> {
  const rows = TABLES.filter(table => table !== 'acknowledgements').map(async table => {
    const [row] = await server.sql`select count(*)::int as n from ${server.sql(table)}`
    return [table, row!['n']] as const
  })
  return Object.fromEntries(await Promise.all(rows))
}
