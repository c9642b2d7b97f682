import { expect } from 'bun:test'
import { toArray } from '../../../src/database/arrays.ts'
import type { Queryable } from '../../../src/database/sql.ts'
import type { Booted } from '../servers/server.ts'
import { newFullTenant, type FullTenant } from './full-tenant.ts'
import { createRequests, type Answered } from './project.ts'

/** Tables that a server also writes by itself, some time after the request that caused it. */
const BACKGROUND_TABLES = [
  'delivery_cursors',
  'event_tokens',
  'key_usage',
  'organization_usage',
  'rate_windows',
  'search_cursors',
  'search_parts',
  'stale_segments',
  'unindexed_users',
  'user_words',
]

/** A tenant whose data must stay unknown and unchanged. */
export interface WatchedTenant extends FullTenant {
  /** An Idempotency-Key that it has used. */
  idempotencyKey: string
  /** Expects nothing of it in the answer, except for `asked`, which the request sent. */
  expectNoLeak(answer: Answered, asked?: string): void
  /** Expects that no row of it was inserted, updated or deleted. */
  expectUnchanged(): Promise<void>
}

/** The table of a changed row, with the row before and after it. */
type Change = [table: string, before: object | null, after: object | null]

export async function listChanges(sql: Queryable): Promise<Change[]> {
  const rows = await sql<{ change: Change }[]>`select change from test_changes`
  return rows.map(({ change }) => change)
}

/**
 * Makes a tenant, and writes each later change of a row that names it in any column into a table.
 * The audit log may have the refused requests, and a session its last use.
 */
export async function newWatchedTenant(server: Booted): Promise<WatchedTenant> {
  const { sql } = server
  const tenant = await newFullTenant(server)
  const { channel: channelName, title, word: thread } = tenant.names
  const idempotencyKey = `idempotency key ${thread}`
  await createRequests(server.url, tenant.key).post(
    '/v1/events',
    { channelName, title, thread, state: 'firing' },
    { 'idempotency-key': idempotencyKey },
  )
  const secrets = [...Object.values(tenant.names), ...Object.values(tenant.params)]
  await sql.unsafe(`
    create table test_changes (change jsonb);
    create function note_change() returns trigger language plpgsql as $$
    declare
      before jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) - 'last_used_at' end;
      after jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) - 'last_used_at' end;
    begin
      if before is distinct from after and concat(before, after) ~ '${tenant.uuids.join('|')}'
        and coalesce(after ->> 'action', '') not like 'access.%'
      then
        insert into test_changes values (jsonb_build_array(tg_table_name, before, after));
      end if;
      return null;
    end
    $$;
  `)
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
      and table_name <> all(${toArray([...BACKGROUND_TABLES, 'test_changes'])}::text[])
  `
  const triggers = tables.map(
    ({ name }) =>
      `create trigger note_change after insert or update or delete on "${name}" for each row execute function note_change()`,
  )
  await sql.unsafe(triggers.join(';'))
  return {
    ...tenant,
    idempotencyKey,
    expectNoLeak({ text, status }, asked) {
      const others = secrets.filter(one => !asked?.includes(one) && !one.includes(asked ?? '\0'))
      expect(others.filter(one => text.includes(one))).toEqual([])
      expect(status).toBeLessThan(500)
    },
    async expectUnchanged() {
      expect(await listChanges(sql)).toEqual([])
    },
  }
}
