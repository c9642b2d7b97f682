import type { Sql, Tx } from '../../database/sql.ts'
import type { KindName } from './delivery-kind.ts'

export interface TargetOfKind {
  kind: KindName
  /** The uuid. */
  targetId: string
}

/** A time in ISO 8601. */
type PauseEnd = string | 'infinity' | '-infinity'

/**
 * Keeps deliveries of a target where they are until `pausedUntil`. From then until `singleUntil`,
 * the target gets one attempt at a time, from all processes together. A longer pause stays.
 */
export async function pauseTarget(
  tx: Tx,
  { kind, targetId }: TargetOfKind,
  pausedUntil: PauseEnd,
  singleUntil: PauseEnd = '-infinity',
): Promise<void> {
  await tx`
    insert into delivery_targets as t (kind, id, paused_until, single_until)
    values (${kind}, ${targetId}, ${pausedUntil}::text::timestamptz, ${singleUntil}::text::timestamptz)
    on conflict (kind, id) do update set
      paused_until = greatest(t.paused_until, excluded.paused_until),
      single_until = greatest(t.single_until, excluded.single_until), probe_id = null
  `
}

/** Ends the pause of a target, and makes its deliveries due that wait for another attempt. */
export async function resumeTarget(tx: Tx, { kind, targetId }: TargetOfKind): Promise<void> {
  await tx`
    insert into delivery_targets as t (kind, id, resumed_at) values (${kind}, ${targetId}, now())
    on conflict (kind, id) do update set
      paused_until = '-infinity', single_until = '-infinity', probe_id = null, resumed_at = now()
  `
}

/**
 * Notes that an attempt of a target has succeeded, so that the next one can begin. It ends the time
 * of single attempts if nothing but a success ends it, or if `isForced`. A disabled target stays.
 */
export async function noteSuccess(
  tx: Tx,
  { kind, targetId }: TargetOfKind,
  isForced: boolean,
): Promise<void> {
  const ends = tx`(${isForced} or single_until = 'infinity')`
  await tx`
    update delivery_targets set
      probe_id = null,
      single_until = case when ${ends} then least(single_until, now()) else single_until end,
      paused_until = case
        when ${ends} and paused_until < 'infinity' then least(paused_until, now())
        else paused_until
      end
    where kind = ${kind} and id = ${targetId}
  `
}

/**
 * Forgets targets whose pause or resumption has been over for a minute. By then every process has
 * scanned them: its later scans begin with their first delivery.
 */
export async function forgetTargets(sql: Sql): Promise<void> {
  await sql`
    delete from delivery_targets t
    where greatest(t.paused_until, t.single_until, t.resumed_at) < now() - interval '1 minute'
      -- Only outbox_waiting has this order.
      and (
        select o.id
        from outbox o
        where o.kind = t.kind and o.target_id = t.id and o.claimed_at < t.resumed_at and o.token is null
        order by o.claimed_at
        limit 1
      ) is null
  `
}
