/** `light` is what everybody runs; `slow` compiles, packages, runs foreign tools or runs long. */
export type Lane = 'light' | 'slow'

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
  unit: { limitMs: 15_000, weight: 2 },
  api: { limitMs: 30_000, weight: 2 },
  browser: { limitMs: 60_000, weight: 3 },
  processes: { limitMs: 60_000, weight: 2 },
}

/** The weight of all batches that run at once. */
export const CAPACITY = 6
/** The kinds of the light lane in their order: plain mistakes come to light first. */
const ORDER: Kind[] = ['unit', 'api', 'processes', 'browser']

/** A process starts in about 0.5 s, so several short files share one. */
const BATCH_MS = 10_000
const UNKNOWN_MS = 5_000

const SLOW = [
  /^test\/runtimes/,
  /^test\/embedded-(containers|majors)/,
  /^test\/migrations-releases/,
  /^test\/client\/package\./,
  /^test\/commands\/(generators|monitoring|pooler)\./,
  /^test\/faults\/(all|clock|containers|drain|fairness|feed|load|network)\./,
  /^test\/faults\/(rolling-upgrade|soak|standby|stop-phases)\./,
]

export function getLane(file: string): Lane {
  return SLOW.some(pattern => pattern.test(file)) ? 'slow' : 'light'
}

export function getKind(file: string): Kind {
  const [, folder = ''] = file.split('/')
  if (folder === 'browser') return 'browser'
  if (folder === 'api' || folder === 'client' || folder.startsWith('migrations')) return 'api'
  if (['unit', 'layers.test.ts', 'guard.test.ts'].includes(folder)) return 'unit'
  return 'processes'
}

/**
 * Puts files into batches of one kind. Batches of fast kinds come first, and of one kind the
 * longest. `durations` maps files to milliseconds.
 */
export function planBatches(files: string[], durations: Readonly<Record<string, number>>): Batch[] {
  const batches: Batch[] = []
  const getMs = (file: string) => durations[file] ?? UNKNOWN_MS
  for (const file of files.toSorted((a, b) => getMs(b) - getMs(a) || a.localeCompare(b))) {
    const kind = getKind(file)
    const room = batches.find(
      batch => batch.kind === kind && batch.expectedMs + getMs(file) <= BATCH_MS,
    )
    if (room) {
      room.files.push(file)
      room.expectedMs += getMs(file)
    } else {
      batches.push({ kind, files: [file], expectedMs: getMs(file) })
    }
  }
  const rank = ({ kind }: Batch) => ORDER.indexOf(kind)
  return batches.toSorted((a, b) => rank(a) - rank(b) || b.expectedMs - a.expectedMs)
}
