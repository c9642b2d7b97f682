// Threads, from their events. Pure: it also runs in the browser.
import type { Event } from '../events/schema.ts'
import type { Thread } from '../events/thread-schema.ts'

/**
 * Returns a thread with one more event, in the order of the log. Undefined stands for the thread
 * before its first event. An event that the thread has already changes nothing. The server has the
 * same in the row of the thread.
 */
export function fold(thread: Thread | undefined, event: Event): Thread {
  if (thread && event.seq <= thread.event.seq) return thread
  const { id, seq, title, icon, url, channelId, channelName, state, level, timestamp } = event
  return {
    thread: event.thread ?? '',
    threadSeq: event.threadSeq ?? seq,
    channelId,
    channelName,
    ...(state !== undefined && { state }),
    ...(level !== undefined && { level }),
    count: (thread?.count ?? 0) + 1,
    openedAt: thread?.openedAt ?? timestamp,
    updatedAt: timestamp,
    event: { id, seq, title, icon, ...(url !== undefined && { url }) },
    ...(thread?.acknowledged && { acknowledged: thread.acknowledged }),
  }
}
