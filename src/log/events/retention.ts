import { toReason } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import { NIL_UUID, toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { startLoop, type Loop } from '../../base/loop.ts'
import type { Pool } from '../../database/pool.ts'
import { UNDO_GRACE_S } from './deletion.ts'

const log = logger('events')
const EVERY_MS = 5_000
/** The pause after a pass that deleted all expired events. */
const IDLE_PAUSE_MS = 60_000
const BATCH = 500
/** The number of channels or projects that one query returns. */
const PAGE_SIZE = 100
/** The longest time to expire events before deleted events are purged again. */
const ROUND_MS = 4_000
/** The longest time to expire events of one channel in a pass. */
const CHANNEL_MS = 1_000
/**
 * The pause after a batch, as a multiple of the batch's time. It leaves the project's log and the
 * disk to others. It is shorter for a channel whose events expired more than LATE_S ago.
 */
const PAUSE_FACTOR = 3
const LATE_PAUSE_FACTOR = 1
const LATE_S = 3_600

/** The key of a channel; uuids. */
interface ChannelKey {
  project_id: string
  channel_id: string
}

/** A channel with a retention. */
interface ChannelWithRetention extends ChannelKey {
  /** The seconds since its oldest event expired. Negative when nothing has expired. */
  late_s: number
}

export interface RetentionOptions {
  /** True if expired events stay until they are exported. */
  needsExport: boolean
}

/** The progress of a pass through all channels with a retention. */
interface RetentionPass {
  /** The last processed channel; undefined at the start and at the end of a pass. */
  after: ChannelKey | undefined
  /** True if a channel still has expired events. */
  isMore: boolean
  /** True if a channel failed. Another pass begins soon. */
  hasFailed: boolean
}

/**
 * Deletes expired events, and purges events that a member deleted, in small batches with pauses. It
 * deletes nothing while the clock is not trusted. Several processes can run it: a lock lets one of
 * them work on a project at a time. With `needsExport`, expired events stay until `tidings export`
 * has written them to a file.
 */
export function startRetention(
  pool: Pool,
  options: RetentionOptions,
  isClockUntrusted: () => Promise<boolean>,
): Loop {
  const pass: RetentionPass = { after: undefined, isMore: false, hasFailed: false }
  let idleUntilMs = 0
  return startLoop({
    everyMs: EVERY_MS,
    runsAtOnce: true,
    async round(signal) {
      if (await isClockUntrusted()) return EVERY_MS
      await purgeDeleted(pool)
      if (performance.now() < idleUntilMs) return EVERY_MS
      await expireEvents(pool, pass, options, signal)
      const hasBacklog = pass.after !== undefined || pass.isMore
      if (!hasBacklog && !pass.hasFailed) idleUntilMs = performance.now() + IDLE_PAUSE_MS
      if (!pass.after) pass.isMore = pass.hasFailed = false
      // A backlog needs no pause here, because each batch has one.
      return hasBacklog ? 0 : EVERY_MS
    },
    onFailure: warn,
  })
}

/** Purges deleted events that can no longer be restored: one batch of each project. */
export async function purgeDeleted(pool: Pool): Promise<void> {
  const rows = await pool.run(
    sql => sql<{ project_id: string; before: string }[]>`
      select distinct project_id, (now() - make_interval(secs => ${UNDO_GRACE_S}))::text as before
      from events
      where deleted_at < now() - make_interval(secs => ${UNDO_GRACE_S})
        or deleted_at > now() + interval '1 minute'
      limit ${PAGE_SIZE}
    `,
  )
  for (const { project_id: project, before } of rows) {
    await pool
      .run(sql => sql`select purge_events(${project}, ${before}::timestamptz, ${BATCH})`)
      .catch(error => warn(toReason(error)))
  }
}

/**
 * Continues a pass and deletes expired events, for up to ROUND_MS. `pass.after` is undefined at the
 * end.
 */
export async function expireEvents(
  pool: Pool,
  pass: RetentionPass,
  options: RetentionOptions,
  signal?: AbortSignal,
): Promise<void> {
  const untilMs = performance.now() + ROUND_MS
  const deleted = new Map<string, number>()
  try {
    for (;;) {
      const startedMs = performance.now()
      const channels = await listChannelsWithRetention(pool, pass.after)
      await pause((performance.now() - startedMs) * PAUSE_FACTOR, signal)
      for (const channel of channels) {
        if (performance.now() > untilMs || signal?.aborted) return
        pass.after = channel
        if (channel.late_s <= 0) continue
        const { isMore, hasFailed, count } = await expireChannel(pool, channel, options, signal)
        pass.isMore ||= isMore
        pass.hasFailed ||= hasFailed
        deleted.set(channel.project_id, (deleted.get(channel.project_id) ?? 0) + count)
      }
      if (channels.length < PAGE_SIZE) break
    }
    pass.after = undefined
  } finally {
    for (const [project, events] of deleted) {
      if (events === 0) continue
      log.info('Deleted {events} expired events', {
        events,
        project: toId('prj', project),
      })
    }
  }
}

/**
 * Deletes a channel's expired events for up to CHANNEL_MS. The next pass retries after an error.
 */
async function expireChannel(
  pool: Pool,
  { project_id: project, channel_id: channel, late_s }: ChannelWithRetention,
  { needsExport }: RetentionOptions,
  signal?: AbortSignal,
): Promise<{ count: number; isMore: boolean; hasFailed: boolean }> {
  const untilMs = performance.now() + CHANNEL_MS
  const pauseFactor = late_s > LATE_S ? LATE_PAUSE_FACTOR : PAUSE_FACTOR
  let count = 0
  let last = '0'
  do {
    const startedMs = performance.now()
    const rows = await pool
      .run(
        sql => sql<{ deleted: number; last_seq: string }[]>`
          select deleted, last_seq from expire_channel(
            project => ${project},
            channel => ${channel},
            after_seq => ${last},
            max_rows => ${BATCH},
            needs_export => ${needsExport}
          )
        `,
      )
      .catch(error => warn(toReason(error)))
    const [row] = rows ?? []
    if (!row) return { count, isMore: false, hasFailed: rows === undefined }
    count += row.deleted
    last = row.last_seq
    if (!(await pause((performance.now() - startedMs) * pauseFactor, signal))) break
  } while (performance.now() < untilMs)
  return { count, isMore: true, hasFailed: false }
}

/** Lists the next channels with a retention. */
async function listChannelsWithRetention(
  pool: Pool,
  after: ChannelKey | undefined,
): Promise<ChannelWithRetention[]> {
  return pool.run(
    sql => sql<ChannelWithRetention[]>`
      select project_id, channel_id, late_s
      from channels_with_retention(
        ${after?.project_id ?? NIL_UUID}, ${after?.channel_id ?? NIL_UUID}, ${PAGE_SIZE}
      )
    `,
  )
}

function warn(reason: string): void {
  log.warning('Deleting events failed and will be retried: {reason}', { reason })
}
