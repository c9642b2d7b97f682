import { toId } from '../../base/ids.ts'
import type { Fragment, Tx } from '../../database/sql.ts'
import { appendOwn } from '../../log/events/append.ts'
import { LEVELS } from '../../log/channels/level.ts'
import { lockLog } from '../../log/channels/channels.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { findArrivals, resolveRule, THREAD, type Arrival } from './arrivals.ts'
import { evaluate, toConditionText, type RuleState } from './evaluate.ts'

/** A step appends few more events than this, because it locks the log meanwhile. */
const MAX_CHANGES = 20
/** The events that a step looks at, before it locks the log and after. */
const MAX_SEEN = 20_000
const MAX_SEEN_LOCKED = 2_000
/** A batch that takes longer is read again in smaller ones. */
const BATCH_LIMIT_MS = 1_000
const MAX_URL = 2_048
const FOREVER_MS = 7 * 86_400_000

/** A row of `rules`. Ids are uuids, and `seq` is a text. */
interface WatchingRule {
  projectId: string
  id: string
  channelId: string
  name: string
  search: string
  moreThan: number | null
  withinMs: number
  level: number
  isOn: boolean
  seq: string
  state: RuleState
}

/** Returns a rule of a project that was not deleted. */
export async function readRule(
  tx: Tx,
  { projectId, id }: { projectId: string; id: string | null },
  lock: Fragment = tx``,
): Promise<WatchingRule | undefined> {
  const [rule] = await tx<WatchingRule[]>`
    select
      r.project_id as "projectId", r.id, r.channel_id as "channelId", r.name, r.search, r.more_than as "moreThan",
      r.within_s * 1000 as "withinMs", r.level, r.is_on as "isOn", r.seq, r.state
    from rules r
      join projects p on p.id = r.project_id and p.deleted_at is null
    where r.project_id = ${projectId} and r.id = ${id}
    ${lock}
  `
  return rule
}

interface RuleStep {
  tx: Tx
  attempt: DeliveryAttempt
  siteUrl: string
  /** Called when an event was appended. */
  noteAppended(): void
}

/**
 * Evaluates the events that came since the last step, and the time, and appends the events of a
 * rule. It does so in one transaction with the new state, so a step that is made again finds
 * nothing new. The log is locked only for changes.
 */
export async function stepRule(step: RuleStep): Promise<DeliveryOutcome> {
  const { tx, attempt } = step
  const { projectId, eventId: id } = attempt
  const rule = await readRule(tx, { projectId, id })
  if (!rule) return { kind: 'cancelled', reason: 'The rule was deleted' }
  if (!rule.isOn) return sleep(FOREVER_MS)
  const fold = ({ arrivals, untilMs }: Seen) =>
    evaluate(
      rule,
      rule.state,
      arrivals.map(({ atMs }) => atMs),
      untilMs,
      MAX_CHANGES,
    )
  let seen = await look(tx, rule, { arrivals: [], seq: BigInt(rule.seq) }, MAX_SEEN)
  let folded = fold(seen)
  if (folded.changes.length > 0) {
    await lockLog(tx, projectId)
    // Events that came meanwhile may be older than the change.
    if (seen.untilMs !== undefined) seen = await look(tx, rule, seen, MAX_SEEN_LOCKED)
    folded = fold(seen)
  }
  const now = await readRule(tx, rule, tx`for update of r`)
  if (JSON.stringify(now) !== JSON.stringify(rule)) return sleep(0)
  const { state, changes, used, nextAtMs } = folded
  for (const { kind } of changes) await tell(step, rule, kind === 'fires')
  const next = seen.arrivals[used]
  await tx`
    update rules set seq = ${String(next ? next.seq - 1 : seen.seq)}, state = ${JSON.stringify(state)}::text::jsonb
    where project_id = ${projectId} and id = ${id}
  `
  return sleep(Math.max(0, Math.min(nextAtMs - (seen.untilMs ?? 0), FOREVER_MS)))
}

function sleep(afterMs: number): DeliveryOutcome {
  return { kind: 'postponed', afterMs, reason: 'It waits for events', isAlone: true }
}

/** The events that were read of a log, up to `seq`. */
interface Seen {
  arrivals: Arrival[]
  seq: bigint
  /** None before this time lacks. Undefined if a limit ended the scan. */
  untilMs?: number | undefined
}

/** Reads on to the end of the log. */
async function look(
  tx: Tx,
  { projectId, search }: WatchingRule,
  { arrivals, seq }: Seen,
  maxCandidates: number,
): Promise<Seen> {
  const [log] = await tx<[{ head: string; nowMs: number; usual: string }]>`
    select
      l.last_seq as head, extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs",
      current_setting('statement_timeout') as usual, set_config('statement_timeout', ${String(BATCH_LIMIT_MS)}, true)
    from log_of(${projectId}) l
  `
  // After the head: events up to there are of channels that are known now.
  const filters = await resolveRule(tx, projectId, search)
  const range = { first: seq + 1n, last: BigInt(log.head) }
  // The search index is not up to date.
  const limits = { maxCandidates, candidatesBeforeIndex: Infinity }
  const found = await findArrivals(tx, projectId, filters, range, { from: seq, limits })
  await tx`select set_config('statement_timeout', ${log.usual}, true)`
  return {
    arrivals: [...arrivals, ...found.arrivals],
    seq: found.stoppedAt ?? range.last,
    untilMs: found.stoppedAt === undefined ? log.nowMs : undefined,
  }
}

/** Appends the event of a change to the thread of its rule. */
async function tell({ tx, siteUrl, noteAppended }: RuleStep, rule: WatchingRule, fires: boolean) {
  const { projectId, id, name, search } = rule
  const url = `${siteUrl}/p/${toId('prj', projectId)}?q=${encodeURIComponent(search)}`
  await appendOwn(tx, rule, {
    title: `${name}: ${toConditionText(rule)}`,
    ...(url.length <= MAX_URL && { url }),
    thread: `${THREAD}${toId('rul', id)}`,
    state: fires ? 'firing' : 'resolved',
    ...(fires && { level: LEVELS[rule.level] ?? 'high' }),
    source: 'rule',
  })
  noteAppended()
}
