import { expect, test } from 'bun:test'
import { createPool } from '../../src/database/pool.ts'
import { getUserJson } from '../../src/log/identities/users.ts'
import { analyzeGrownTables } from '../../src/server/grown-tables.ts'
import { cloneDatabase, isolateCluster } from '../support/servers/postgres.ts'
import { countRows } from '../support/row-counts.ts'
import { openSql } from '../support/sql.ts'

const PROJECT = '00000000-0000-7000-8000-000000000001'
const USERS = 10_000

test('plans that were made on emptied tables are made anew once the tables have grown', async () => {
  // Changes of other databases' schemas can make Postgres drop the plans of all sessions.
  await using _ = isolateCluster()
  const url = await cloneDatabase()
  const pool = createPool(url, { name: 'test', max: 1 })
  const sql = openSql(url, { settings: { statement_timeout: 0 } })
  await sql`alter table identities set (autovacuum_enabled = off)`
  await sql`alter table aliases set (autovacuum_enabled = off)`
  // The analysis of the empty tables.
  await sql.unsafe('vacuum')
  const read = async () => {
    const before = await countRows(sql)
    await getUserJson(sql, PROJECT, '@user-7').catch(() => {})
    const after = await countRows(sql)
    const read = (table: string) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
    return Math.max(read('identities'), read('aliases'))
  }
  for (let n = 0; n < 7; n++) await read()
  expect(await analyzeGrownTables(pool)).toEqual([])

  await sql.unsafe(`
    insert into organizations (id, name) values ('${PROJECT}', 'o');
    insert into projects (id, organization_id, name) values ('${PROJECT}', '${PROJECT}', 'p');
    insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
      select '${PROJECT}', 'user-' || n, md5('user' || n)::uuid, 'idn_' || n, '{}', now(), now()
      from generate_series(1, ${USERS}) as n;
    insert into aliases (project_id, alias, user_id, created_at)
      select project_id, '@' || user_id, user_id, now() from identities;
  `)
  // Each table a few times, but not once for each user.
  const before = await read()
  expect(before).toBeGreaterThanOrEqual(USERS)
  expect(before).toBeLessThanOrEqual(4 * USERS)

  expect(await analyzeGrownTables(pool)).toEqual(expect.arrayContaining(['aliases', 'identities']))
  expect(await read()).toBeLessThanOrEqual(10)
  expect(await analyzeGrownTables(pool)).toEqual([])
  await Promise.all([pool.end(), sql.end()])
})
