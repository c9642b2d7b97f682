import { LEVELS } from '../../../src/log/channels/level.ts'
import { isOpen } from '../../../src/log/events/state.ts'
import { fold } from '../../../src/log/threads/fold.ts'

const PAGE = 50

/** Returns the seq of the event that opened the thread of an event: an open one, or a new one. */
export function findThreadSeq(log: readonly any[], event: any): number {
  const { thread, channelName, state, seq } = event
  const last = log.findLast(one => one.thread === thread && one.channelName === channelName)
  return last && (isOpen(last.state) || state === 'resolved') ? last.threadSeq : seq
}

/** Returns a page of the open threads of a fake log, the worst first. */
export function listOpenThreads(log: readonly any[], { searchParams }: URL) {
  const threads = new Map<number, any>()
  for (const event of log.filter(({ threadSeq }) => threadSeq))
    threads.set(event.threadSeq, fold(threads.get(event.threadSeq), event))
  const toSeverity = ({ level = 'normal', state }: any) =>
    LEVELS.indexOf(level) * 2 + Number(state === 'firing')
  const open = [...threads.values()]
    .filter(({ state }) => isOpen(state))
    .toSorted((a, b) => toSeverity(b) - toSeverity(a) || a.threadSeq - b.threadSeq)
  const from = Number(searchParams.get('cursor') ?? 0)
  const end = from + Number(searchParams.get('limit') ?? PAGE)
  return { items: open.slice(from, end), nextCursor: open.length > end ? String(end) : null }
}
