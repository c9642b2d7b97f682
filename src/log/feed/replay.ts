import { setTimeout as sleep } from 'node:timers/promises'
import { feedReplayRows } from '../../base/metrics.ts'
import { createSemaphore } from '../../base/semaphore.ts'
import type { Pool } from '../../database/pool.ts'
import { isUnreachable, QUERY_CANCELED, sqlState } from '../../database/sql.ts'
import { matches, toNeeds } from './filter.ts'
import type { Hub, Subscription } from './hub.ts'
import { logFailure, readSlices } from './read-events.ts'

const PAGE = 200
const MIN_PAGE = 8
/** The pages that are read at a time: of one organization, and of all together. */
const PAGES_PER_ORGANIZATION = 1
const PAGES = 2
/** The bytes of metadata, descriptions and urls with which a page ends. */
const PAGE_BYTES = 256 * 1024
/**
 * Above FULL_BYTES of unsent data, a socket gets no more until at most DRAINED_BYTES are unsent.
 */
const FULL_BYTES = 256 * 1024
const DRAINED_BYTES = 64 * 1024
const MIN_WAIT_MS = 5
const MAX_WAIT_MS = 250
const STALLED_MS = 60_000
const RETRY_MS = 1_000
/** The pause after a whole page, in the time that the page took. It leaves time to others. */
const PAUSES_PER_PAGE = 1

export interface ReplayOptions {
  pool: Pool
  hub: Hub
  /** Returns true if access was checked recently enough to send events. */
  isAllowed(): boolean
  /** Called when a client has received nothing for a minute. */
  onStalled(subscription: Subscription): void
}

/**
 * Replays missed events. Resolves when the subscription is live or has ended. Rejects if its next
 * event cannot be read. Waits while the database cannot be reached.
 */
export type Replay = ReturnType<typeof createReplay>

/**
 * Sends subscriptions the events after their cursors, page by page, until they are live. Two pages
 * are read at a time, of two organizations. The next page is read only after the client has
 * received the last one, so slow clients cost no memory.
 */
export function createReplay({ pool, hub, isAllowed, onStalled }: ReplayOptions) {
  const slots = createSemaphore({ total: PAGES, perKey: PAGES_PER_ORGANIZATION })

  async function replay(subscription: Subscription, organizationId: string): Promise<void> {
    let page = PAGE
    while (hub.has(subscription)) {
      if (!(await untilDrained(subscription))) return
      if (hub.goLiveIfNear(subscription)) return
      try {
        await slots.run(organizationId, async () => {
          // A page of long events can exceed what the socket takes. Then the next page is shorter.
          const startedMs = performance.now()
          const taken = await sendPage(subscription, organizationId, page)
          // In the slot of the organization, so that its sockets pause together.
          if (subscription.cursor < hub.toReplayEnd(subscription))
            await sleep(PAUSES_PER_PAGE * (performance.now() - startedMs))
          page = taken < page ? Math.max(2 * taken, MIN_PAGE) : Math.min(2 * page, PAGE)
        })
      } catch (error) {
        // A shorter page takes less time.
        if (sqlState(error) === QUERY_CANCELED && page > 1) page = Math.ceil(page / 8)
        else if (!isUnreachable(error)) throw error
        logFailure('Reading a page of a replay failed', error)
        await sleep(RETRY_MS)
      }
    }
  }

  /** Returns how many events were sent or skipped; `page` when the page was not cut short. */
  async function sendPage(
    subscription: Subscription,
    organizationId: string,
    page: number,
  ): Promise<number> {
    if (!hub.has(subscription)) return page
    if (!isAllowed()) {
      await sleep(MAX_WAIT_MS)
      return page
    }
    const { projectId, filters, cursor, socket } = subscription
    const until = hub.toReplayEnd(subscription)
    const slice = { projectId, after: cursor, until, ...toNeeds([filters]) }
    const bounds = { each: page, most: page, maxBytes: PAGE_BYTES }
    const { events, isCut } = await pool
      .of(organizationId)
      .run(sql => readSlices(sql, [slice], bounds))
    feedReplayRows.inc(events.length)
    let taken = 0
    for (const event of events) {
      if (!hub.has(subscription)) return page
      // The rest of the page is read again later. Keeping it would cost memory for each slow
      // client.
      if (socket.bufferedBytes > FULL_BYTES) return taken
      if (matches(filters, event.fields) && !hub.isDeleted(event)) socket.send(event.text)
      subscription.cursor = event.seq
      taken++
    }
    if (!isCut) subscription.cursor = Math.max(subscription.cursor, until)
    return page
  }

  /**
   * Waits until the client has received most data. Returns false when the subscription has ended or
   * stalled.
   */
  async function untilDrained(subscription: Subscription): Promise<boolean> {
    const { socket } = subscription
    let least = socket.bufferedBytes
    if (least <= FULL_BYTES) return true
    let movedMs = performance.now()
    for (let waitMs = MIN_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
      await sleep(waitMs)
      if (!hub.has(subscription)) return false
      if (socket.bufferedBytes <= DRAINED_BYTES) return true
      if (socket.bufferedBytes < least) {
        least = socket.bufferedBytes
        movedMs = performance.now()
      } else if (performance.now() - movedMs > STALLED_MS) {
        onStalled(subscription)
        return false
      }
    }
  }

  return replay
}
