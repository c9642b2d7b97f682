import { toArray } from '../../../src/database/arrays.ts'
import type { Queryable, Sql } from '../../../src/database/sql.ts'
import {
  toDispatched,
  type DispatchingKind,
  type DeliveryOutcome,
  type DispatchedRow,
} from '../../../src/delivery/outbox/delivery-kind.ts'
import { scaled } from '../until.ts'

/** The outcome of an attempt whose lease may end during its request. */
const UNSENT: DeliveryOutcome = { kind: 'postponed', afterMs: 5_000, reason: 'It was not sent' }

/**
 * A delivery kind whose targets are rows of a test table and match every event of their project.
 * Unless `options` say otherwise, each attempt succeeds at once.
 */
export function createTestKind(options: Partial<DispatchingKind> = {}): DispatchingKind {
  const { name = 'webhook', send = async () => ({ kind: 'done' }) as const } = options
  return {
    name,
    schedule: [0, 5_000, 300_000],
    perTarget: 8,
    timeoutMs: Math.min(scaled(5_000), 30_000),
    leaseMs: Math.min(scaled(30_000), 60_000),
    leasesNew: true,
    async dispatch(sql, request) {
      const { projectIds, maxEvents, lease } = request
      const [row] = await sql<[DispatchedRow]>`
        select ranges, count, leased
        from dispatch_to_test_targets(
          ${name}, ${toArray(projectIds)}::uuid[], ${maxEvents}, ${lease ? JSON.stringify(lease) : null}::text::json
        )
      `
      return toDispatched(row, request)
    },
    async getTargetNames(sql, { projectId, targetIds }) {
      const rows = await sql<{ id: string; name: string }[]>`
        select id, name
        from test_targets
        where project_id = ${projectId} and id = any(${toArray(targetIds)}::uuid[])
      `
      return new Map(rows.map(target => [target.id, target.name]))
    },
    ...options,
    async send(attempt, signal) {
      // A request begins before its outcome is known, as that of a real kind does.
      return attempt.begin() ? send(attempt, signal) : UNSENT
    },
  }
}

/** Creates the table of the targets and its functions, once per database. */
export async function createTargets(sql: Sql): Promise<void> {
  await sql.unsafe(`
    create table test_targets (
      project_id uuid not null, id uuid not null, name text not null, primary key (project_id, id)
    );
    create function dispatch_to_test_targets(of_kind text, project_ids uuid[], max_events int, lease json)
    returns table (ranges json, count bigint, leased json)
    language plpgsql
    set plan_cache_mode = force_generic_plan
    set enable_seqscan = off
    set enable_bitmapscan = off
    set enable_hashjoin = off
    set enable_mergejoin = off
    as $$
    declare
      new_ranges event_range[] := array(select r from lock_event_ranges(of_kind, project_ids) r);
      with_targets uuid[] := array(
        select f.project_id from unnest(new_ranges) f where exists (select from test_targets t where t.project_id = f.project_id)
      );
      taken event_range[] := array(select r from take_ranges(of_kind, new_ranges, with_targets, max_events) r);
      wanted new_delivery[] := array(
        select (e.project_id, e.id, t.id, e.created_at, e.deleted_at is not null, false)::new_delivery
        from unnest(taken) r
          cross join lateral (
            select e.*
            from events_between(r.project_id, r.from_seq, r.to_seq) e
            order by e.seq
            limit r.to_seq - r.from_seq
          ) e
          join test_targets t on t.project_id = e.project_id
        where r.has_targets
      );
    begin
      return query
        select array_to_json(taken), d.count, d.leased from insert_deliveries(of_kind, wanted, '', lease) d;
    end
    $$;
  `)
}

export async function addTarget(
  sql: Queryable,
  projectId: string,
  name = 'A target',
): Promise<string> {
  const id = crypto.randomUUID()
  await sql`insert into test_targets (project_id, id, name) values (${projectId}, ${id}, ${name})`
  return id
}
