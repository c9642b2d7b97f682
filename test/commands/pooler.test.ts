import { expect, setDefaultTimeout, test } from 'bun:test'
import { parseUrl } from '../../src/base/database-url.ts'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { connect } from '../../src/database/sql.ts'
import { runApiTests } from '../support/api-tests.ts'
import { toPooledUrl } from '../support/servers/pooler.ts'
import { cloneDatabase, toSuperuserUrl } from '../support/servers/postgres.ts'
import { POOLER } from '../support/servers/server.ts'
import { hasTool } from '../support/tools.ts'
import { scaled, until } from '../support/until.ts'

setDefaultTimeout(scaled(120_000))

/** The write path, reading, the feed and deliveries. */
const FILES = [
  'log/events/append',
  'http/limits/idempotency',
  'log/identities/identify',
  'log/feed/notifier',
  'delivery/outbox/dispatcher',
]

test.skipIf(!hasTool('pgbouncer'))(
  'scale §1 the API passes its tests through PgBouncer in transaction mode',
  async () => {
    const output = await runApiTests(FILES, { [POOLER]: '1' })
    expect(output).toMatch(/^ 0 fail$/m)
  },
)

test.skipIf(!hasTool('pgbouncer'))(
  'scale §1 behind PgBouncer each transaction has its settings, and the next one has its own',
  async () => {
    const url = await toPooledUrl(await cloneDatabase())
    const fast = connect(url, { name: 'test', max: 3, settings: { lock_timeout: 123 } })
    const slow = connect(url, { name: 'test', max: 3, settings: { synchronous_commit: 'off' } })
    const read = async (sql: typeof fast) => {
      const [row] = await sql<[Record<string, string>]>`
        select
          current_setting('lock_timeout') as lock, current_setting('synchronous_commit') as commit,
          ${'a'}::text as text
      `
      return Object.values(row)
    }
    const both = await Promise.all(
      Array.from({ length: 40 }, (_, nth) => read(nth % 2 === 0 ? fast : slow)),
    )
    both.forEach((values, nth) =>
      expect(values).toEqual(nth % 2 === 0 ? ['123ms', 'on', 'a'] : ['2s', 'off', 'a']),
    )
    await fast.begin(async tx => {
      expect(await tx`show lock_timeout`).toEqual([{ lock_timeout: '123ms' }] as never)
      await tx`set local lock_timeout = 456`
      // A later statement of the transaction keeps it.
      expect(await tx`show lock_timeout`).toEqual([{ lock_timeout: '456ms' }] as never)
    })
    // An error ends one statement, and the connection goes on.
    await expect(fast`select 1 / ${0}::int`.execute()).rejects.toThrow('division by zero')
    await fast.unsafe('select 1')
    expect(await read(fast)).toEqual(['123ms', 'on', 'a'])
    await Promise.all([fast.end(), slow.end()])
  },
)

test.skipIf(!hasTool('pgbouncer'))(
  'behind PgBouncer the settings of the role have no effect, except for the isolation',
  async () => {
    const direct = await cloneDatabase()
    const admin = connect(await toSuperuserUrl(direct), { name: 'test', max: 1 })
    const { database } = parseUrl(direct)
    const settings = { DateStyle: 'SQL, DMY', IntervalStyle: 'iso_8601', bytea_output: 'escape' }
    for (const [name, value] of Object.entries({ ...settings, search_path: 'nowhere' })) {
      await admin.unsafe(`alter database ${database} set ${name} = '${value}'`)
    }
    const pooled = await toPooledUrl(direct)
    await waitUntilReachable(pooled)
    const sql = connect(pooled, { name: 'test', max: 1 })
    const [row] = await sql<[Record<string, string>]>`
      select
        date '2026-02-05'::text as day, interval '1 day'::text as span, '\\x00'::bytea::text as bytes,
        to_regclass('events')::text as found
    `
    expect(Object.values(row)).toEqual(['2026-02-05', '1 day', '\\x00', 'events'])
    await sql.end()

    await admin.unsafe(
      `alter database ${database} set default_transaction_isolation = serializable`,
    )
    // The pooler keeps sessions with the former settings.
    await admin`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = ${database!} and backend_type = 'client backend' and pid <> pg_backend_pid()
    `
    await until(() =>
      waitUntilReachable(pooled).then(
        () => false,
        (error: unknown) => String(error).includes('Reset default_transaction_isolation for'),
      ),
    )
    await admin.end()
  },
)
