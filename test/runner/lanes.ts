import { availableParallelism } from 'node:os'

/**
 * `quick` is what everybody runs, without a browser and with the tools of a bare Debian; `browser`
 * needs Chromium; `slow` compiles, packages, needs other tools or runs long.
 */
export type Lane = 'quick' | 'browser' | 'slow'

export const LANES: readonly Lane[] = ['quick', 'browser', 'slow']

/** The kind of a test file decides how long a test may take, and how many files run at once. */
export type Kind = 'unit' | 'api' | 'browser' | 'processes'

/** Files that one process runs, one after the other. */
export interface Batch {
  kind: Kind
  files: string[]
  /** The expected duration. */
  expectedMs: number
}

interface KindSettings {
  /** The time limit of a test on a machine of the usual speed. */
  limitMs: number
  /** The part of `CAPACITY` that a batch takes. Measured: see docs/decisions.md. */
  weight: number
}

export const KINDS: Record<Kind, KindSettings> = {
  unit: { limitMs: 15_000, weight: 3 },
  api: { limitMs: 30_000, weight: 3 },
  browser: { limitMs: 60_000, weight: 4 },
  processes: { limitMs: 60_000, weight: 3 },
}

/** The weight of all batches that run at once. */
const CAPACITY = 12
/** The kinds of a lane in their order: plain mistakes come to light first. */
const ORDER: Kind[] = ['unit', 'api', 'processes', 'browser']

/**
 * Files share a process, which loads the program and starts a browser once. The batches of the last
 * kind become shorter, so that all of them end at about the same time.
 */
const MAX_BATCH_MS = 90_000
const MIN_BATCH_MS = 10_000
const UNKNOWN_MS = 5_000

const SLOW = [
  /^test\/runtimes\//,
  /^test\/packaging\./,
  /^test\/database\/embedded\/(embedded(\.containers)?|upgrade)\.processes\./,
  /^test\/database\/releases\./,
  /^test\/browser\/first-minute\./,
  /^test\/clients(\.one-file|\/action)\./,
  /^test\/clients\/typescript\/package\./,
  /^test\/commands\/(database-(matrix|tls)|docs-operators|generators|monitoring|pooler|watchdog)\./,
  /^test\/delivery\/rules\/rules\.processes\./,
  /^test\/docs\/examples\./,
  /^test\/faults\/(attention|clock|drain|fairness|network)\./,
  /^test\/faults\/(rolling-upgrade|standby|start|stop-phases|sweep-(deliveries|users))\./,
  /^test\/http\/openapi\.patterns\.api\./,
  /\.programs\.api\./,
]

export function getLane(file: string): Lane {
  if (SLOW.some(pattern => pattern.test(file))) return 'slow'
  return getKind(file) === 'browser' ? 'browser' : 'quick'
}

/** Kinds of tests that have a folder of their own, beside the rooms. */
const FOLDERS: Readonly<Record<string, Kind>> = {
  browser: 'browser',
  commands: 'processes',
  faults: 'processes',
  properties: 'processes',
  runtimes: 'processes',
}

/** `a.test.ts` is a unit test, and `a.api.test.ts` sends requests to a server. */
export function getKind(file: string): Kind {
  const [, folder = ''] = file.split('/')
  const [, kind] = /\.(api|processes)\.test\.ts$/.exec(file) ?? []
  return FOLDERS[folder] ?? (kind as Kind | undefined) ?? 'unit'
}

/**
 * Puts files into batches of one kind. Batches of fast kinds come first, and of one kind the
 * longest. `durations` maps files to milliseconds. Files for which `isSharing` is true, which leave
 * a server to the next file of their process, get batches of their own.
 */
export function planBatches(
  files: string[],
  durations: Readonly<Record<string, number>>,
  isSharing: (file: string) => boolean = () => false,
): Batch[] {
  const getMs = (file: string) => durations[file] ?? UNKNOWN_MS
  const sorted = files.toSorted((a, b) => getMs(b) - getMs(a) || a.localeCompare(b))
  const kinds = ORDER.flatMap(kind =>
    [true, false].map(shares => ({
      kind,
      files: sorted.filter(file => getKind(file) === kind && isSharing(file) === shares),
    })),
  ).filter(({ files }) => files.length > 0)
  return kinds.flatMap(({ kind, files }, nth) =>
    planKind(kind, files, getMs, nth === kinds.length - 1),
  )
}

/** Fills each batch with the longest files that fit into it. */
function planKind(
  kind: Kind,
  files: string[],
  getMs: (file: string) => number,
  isLast: boolean,
): Batch[] {
  const batches: Batch[] = []
  const slots = CAPACITY / KINDS[kind].weight
  const sumMs = (some: string[]) => some.reduce((sum, file) => sum + getMs(file), 0)
  let waiting = files
  while (waiting.length > 0) {
    const shareMs = isLast ? sumMs(waiting) / (2 * slots) : sumMs(files) / slots
    const roomMs = Math.min(Math.max(shareMs, MIN_BATCH_MS), MAX_BATCH_MS)
    const batch: Batch = { kind, files: [], expectedMs: 0 }
    for (const file of waiting) {
      if (batch.files.length > 0 && batch.expectedMs + getMs(file) > roomMs) continue
      batch.files.push(file)
      batch.expectedMs += getMs(file)
    }
    waiting = waiting.filter(file => !batch.files.includes(file))
    batches.push(batch)
  }
  return batches.toSorted((a, b) => b.expectedMs - a.expectedMs)
}

/** Returns about how long files take side by side, in milliseconds, on a machine of this factor. */
export function estimateMs(
  files: string[],
  durations: Readonly<Record<string, number>>,
  factor: number,
): number {
  const tookMs = files.map(file => durations[file] ?? UNKNOWN_MS)
  const sumMs = tookMs.reduce((sum, ms) => sum + ms, 0)
  return factor * Math.max(sumMs / getSlots(), ...tookMs)
}

/** Returns what this machine may run side by side. Four browsers and their servers fill 4 GB. */
export function getCapacity(): number {
  return (CAPACITY * Math.min(Math.max(availableParallelism(), 2), 4)) / 2
}

/** Returns how many batches may run side by side, where nothing else is at work. */
export function getSlots(): number {
  return getCapacity() / KINDS.unit.weight
}
