import type { Event } from '../../../log/events/schema.ts'

/** Equal events collapse within periods of this length. */
const PERIOD_MS = 5_000
const SECOND_MS = 1_000
const MINUTE_MS = 60_000
/** A second with more events than this is busy. */
const MAX_CALM = 5

/** The fields of a row that decide where it stands. */
interface Arrival extends Pick<Event, 'level' | 'state'> {
  seq: number
  channelId: string
  title: string
  /** When the event happened. */
  atMs: number
  /** When the server received it. */
  receivedMs: number
}

/** An item of a list: one row, or a group of equal rows. */
export interface Entry<Row> {
  /** Remains the same while other rows come and go. */
  key: string
  /** Newest first. More than one is a group. */
  rows: readonly Row[]
}

/**
 * Returns the entries of a list, newest first. Events with the same title, level and state collapse
 * if they belong to one channel and arrived in the same busy period. A group is in the place of its
 * oldest row, so that later ones move nothing. `rows` are newest first.
 */
export function collapse<Row extends Arrival>(rows: readonly Row[]): Entry<Row>[] {
  const toKey = readPeriods(rows)
  const entries = new Map<string, Entry<Row> & { rows: Row[] }>()
  for (const row of [...rows].reverse()) {
    const key = toKey(row)
    const known = entries.get(key)
    if (known) known.rows.push(row)
    else entries.set(key, { key, rows: [row] })
  }
  return [...entries.values()].reverse().map(entry => ({ ...entry, rows: entry.rows.reverse() }))
}

/** Returns how many of the newest rows fit into `most` entries. */
export function countRows(rows: readonly Arrival[], most: number): number {
  const toKey = readPeriods(rows)
  const keys = new Set<string>()
  const end = rows.findIndex(row => keys.add(toKey(row)).size > most)
  return end < 0 ? rows.length : end
}

/**
 * Returns what makes the key of a row. A period with a busy second is busy, and so is the next one,
 * which begins with few events.
 */
function readPeriods(rows: readonly Arrival[]) {
  const counts = new Map<number, number>()
  const busy = new Set<number>()
  for (const { receivedMs } of rows) {
    const second = Math.floor(receivedMs / SECOND_MS)
    const count = (counts.get(second) ?? 0) + 1
    counts.set(second, count)
    if (count > MAX_CALM) busy.add(toPeriod(receivedMs))
  }
  const isBusy = ({ receivedMs }: Arrival) => {
    const period = toPeriod(receivedMs)
    return busy.has(period) || busy.has(period - 1)
  }
  return (row: Arrival) => {
    const { seq, atMs, receivedMs, channelId, level, state, title } = row
    if (!isBusy(row)) return String(seq)
    // Events of other times, as in an import, are not equal.
    const delay = Math.round((receivedMs - atMs) / MINUTE_MS)
    return [toPeriod(receivedMs), delay, channelId, level, state, title].join(' ')
  }
}

function toPeriod(ms: number): number {
  return Math.floor(ms / PERIOD_MS)
}
