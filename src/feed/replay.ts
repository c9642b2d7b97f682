import type { Pool } from '../db/pool.ts'
import { feedReplayRows } from '../metrics.ts'
import { logFailure } from './failure.ts'
import { matches } from './filter.ts'
import type { Hub, Subscription } from './hub.ts'
import { readStretches } from './read.ts'
import { createTurns } from './turns.ts'

const PAGE = 200
const LEAST_PAGE = 8
const AT_ONCE = 2
/** A socket with more than this waiting is given no more until it has taken most of it. */
const FULL_BYTES = 256 * 1024
const FREE_BYTES = 64 * 1024
const FIRST_WAIT_MS = 5
const LONGEST_WAIT_MS = 250
const STALLED_MS = 60_000
const RETRY_MS = 1_000

export interface ReplayOptions {
  pool: Pool
  hub: Hub
  /** Whether it was seen within seconds that those who follow may do so. */
  isAllowed(): boolean
  /** Called for a client that has taken nothing for a minute. */
  onStalled(subscription: Subscription): void
}

/**
 * Brings streams from their cursors to where the hub is, page by page, and hands them over. Pages are read two at a time,
 * for all people in turn, and none is read for a client that has not taken what it was sent: so it may take as long as it
 * needs, and nothing piles up.
 */
export function createReplay({ pool, hub, isAllowed, onStalled }: ReplayOptions) {
  const turns = createTurns(AT_ONCE)

  /** Resolves when the stream goes on live, or is no more. */
  async function replay(subscription: Subscription, personId: string): Promise<void> {
    let page = PAGE
    while (hub.has(subscription)) {
      if (!(await untilFree(subscription))) return
      if (hub.join(subscription)) return
      try {
        await turns.run(personId, async () => {
          // Where events are long, a page is more than the socket takes: the next one is no longer than it took.
          const taken = await sendPage(subscription, page)
          page = taken < page ? Math.max(2 * taken, LEAST_PAGE) : Math.min(2 * page, PAGE)
        })
      } catch (error) {
        logFailure('A page could not be read', error)
        await pause(RETRY_MS)
      }
    }
  }

  /** Returns how many events of the page the client was given, or did not want. */
  async function sendPage(subscription: Subscription, page: number): Promise<number> {
    if (!hub.has(subscription)) return page
    if (!isAllowed()) {
      await pause(LONGEST_WAIT_MS)
      return page
    }
    const { projectId, filter, cursor, socket } = subscription
    const until = hub.toFloor(subscription)
    const stretch = {
      projectId,
      after: cursor,
      until,
      userNames: filter.userId === undefined ? [] : [filter.userId],
      wantsWords: filter.words !== undefined,
    }
    const events = await pool.run(sql => readStretches(sql, [stretch], { each: page, most: page }))
    feedReplayRows.inc(events.length)
    let taken = 0
    for (const event of events) {
      if (!hub.has(subscription)) return page
      // What is left of the page is read again: to keep it would cost memory for every client that is slow.
      if (socket.bufferedBytes > FULL_BYTES) return taken
      if (matches(filter, event.facts)) socket.send(event.text)
      subscription.cursor = event.seq
      taken++
    }
    if (taken < page) subscription.cursor = Math.max(subscription.cursor, until)
    return page
  }

  /** False when the stream has ended, or its client takes nothing. */
  async function untilFree(subscription: Subscription): Promise<boolean> {
    const { socket } = subscription
    let least = socket.bufferedBytes
    if (least <= FULL_BYTES) return true
    let movedMs = performance.now()
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      await pause(waitMs)
      if (!hub.has(subscription)) return false
      if (socket.bufferedBytes <= FREE_BYTES) return true
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

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
