import type { Event } from '../../../log/events/schema.ts'
import type { Thread, ThreadPage } from '../../../log/events/thread-schema.ts'
import { LEVELS } from '../../../log/channels/level.ts'
import { isOpen } from '../../../log/events/state.ts'
import { fold } from '../../../log/threads/fold.ts'

/** The server is asked for a longer list, because it can have more pages. */
export const MAX_FOLLOWED = 50

/**
 * Returns a page of open threads after later events, and whether it is current. If it is not, the
 * server has to be asked.
 */
export function follow(page: ThreadPage, events: readonly Event[]) {
  const open = new Map(page.items.map(thread => [thread.threadSeq, thread]))
  const isWhole = page.nextCursor === null
  let isCurrent = true
  for (const event of events) {
    const { threadSeq = 0, seq } = event
    const known = open.get(threadSeq)
    if (known && seq <= known.event.seq) continue
    const isNew = seq === threadSeq && isWhole && open.size < MAX_FOLLOWED
    if (!isOpen(event.state)) {
      // Another page has the thread that takes its place.
      if (open.delete(threadSeq) && !isWhole) isCurrent = false
    } else if (known ? isWhole || toSeverity(known) === toSeverity(event) : isNew)
      open.set(threadSeq, fold(known, event))
    else isCurrent = false
  }
  const items = [...open.values()].sort(
    (one, other) => toSeverity(other) - toSeverity(one) || one.threadSeq - other.threadSeq,
  )
  return { page: { ...page, items }, isCurrent }
}

/** Returns a number that is higher for a worse thread, as the server orders them. */
function toSeverity({ level = 'normal', state }: Pick<Thread, 'level' | 'state'>): number {
  return LEVELS.indexOf(level) * 2 + Number(state === 'firing')
}
