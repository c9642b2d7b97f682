import { connect } from '../../src/database/sql.ts'
import { cloneDatabase, closeCluster, createEmptyDatabase } from '../support/servers/postgres.ts'
import { startLineProcess, type LineProcess } from './feed-process.ts'
import { findNode, installPeers } from './peers.ts'
import { openPostgresClock, readProcessorMs } from './processor-time.ts'
import { interleaveFigures, toShare, type Line } from './table.ts'

const JOBS = toShare(20_000)
const WARM_UP = toShare(2_000)
const PER_SECOND = 200
const PACED = toShare(5 * PER_SECOND)
const STUCK = toShare(100_000)
const HEALTHY = toShare(4_000)

type Figures = Record<'enqueued' | 'drained' | 'processorMs' | 'p99Ms' | 'healthy', number>

/** The figures, and whether more or less is better. */
const FIGURES: [figure: keyof Figures, what: string, better: Line['better']][] = [
  ['enqueued', `jobs/s when ${JOBS} are enqueued in bulk (Tidings: events dispatched)`, 'more'],
  ['drained', 'jobs/s when empty jobs are claimed, started and completed', 'more'],
  ['processorMs', 'ms of processor time per job, enqueued and completed, with Postgres', 'less'],
  ['p99Ms', `ms p99 until a job starts, at ${PER_SECOND} jobs/s (Tidings: from the event)`, 'less'],
  ['healthy', `jobs/s completed while ${STUCK} jobs wait for a stuck target`, 'more'],
]

/**
 * Compares the outbox with queues on the same Postgres, one process each. Ours writes events, and
 * from them a job for each target. It claims jobs of all targets in turn, up to the limit of each.
 * It renews leases of 30 s, refuses later outcomes, and records every job. pg-boss keeps its jobs,
 * completes a batch as a whole, and reclaims jobs of a dead worker after 15 minutes.
 * graphile-worker deletes its jobs, and reclaims them after 4 hours.
 */
export async function compareQueue(): Promise<Line[]> {
  installPeers()
  const startPeer = async (name: string) =>
    startLineProcess('queue-peers.ts', [name, await createEmptyDatabase()], findNode())
  const sql = connect(await createEmptyDatabase(), { name: 'bench', max: 1 })
  const readPostgresMs = await openPostgresClock(sql)
  const measure = (queue: LineProcess) => measureQueue(queue, readPostgresMs)
  try {
    const figures = await interleaveFigures({
      tidings: async () =>
        measure(await startLineProcess('queue-ours.ts', [await cloneDatabase()])),
      'pg-boss': async () => measure(await startPeer('pg-boss')),
      'graphile-worker': async () => measure(await startPeer('graphile-worker')),
    })
    const { tidings, ...peers } = figures
    return FIGURES.flatMap(([figure, what, better]) =>
      Object.entries(peers).map(([reference, theirs]) => ({
        subject: 'queue',
        what,
        ours: tidings[figure],
        reference,
        theirs: theirs[figure],
        better,
      })),
    )
  } finally {
    await sql.end()
    await closeCluster()
  }
}

/** Throws or never answers for a queue that loses a job or starts one twice. */
async function measureQueue(queue: LineProcess, readPostgresMs: () => number): Promise<Figures> {
  const ask = async (line: string) => {
    queue.say(line)
    return JSON.parse(await queue.hear()) as Record<'perSecond' | 'p99Ms', number>
  }
  try {
    await ask(`prepare ${WARM_UP}`)
    await ask(`enqueue ${WARM_UP}`)
    await ask(`drain ${WARM_UP}`)
    await ask(`prepare ${JOBS}`)
    const beforeMs = readPostgresMs() + readProcessorMs(queue.pid)
    const enqueued = (await ask(`enqueue ${JOBS}`)).perSecond
    const drained = (await ask(`drain ${JOBS}`)).perSecond
    const processorMs = (readPostgresMs() + readProcessorMs(queue.pid) - beforeMs) / JOBS
    const { p99Ms } = await ask(`pace ${PACED} ${PER_SECOND}`)
    await ask(`stick ${STUCK}`)
    await ask(`prepare ${HEALTHY}`)
    await ask(`enqueue ${HEALTHY}`)
    const healthy = (await ask(`drain ${HEALTHY}`)).perSecond
    return { enqueued, drained, processorMs, p99Ms, healthy }
  } finally {
    await queue.stop()
  }
}
