import { cloneDatabase, closeCluster, createEmptyDatabase } from '../support/postgres.ts'
import { startWorker, type Worker } from './feed-process.ts'
import { findNode, installPeers } from './peers.ts'
import { interleaveFigures, SHARE, type Line } from './table.ts'

const JOBS = 20_000 * SHARE
const WARM_UP = 2_000 * SHARE
const PER_SECOND = 200
const PACED = 5 * PER_SECOND * SHARE
const STUCK = 100_000 * SHARE
const HEALTHY = 4_000 * SHARE

type Figures = Record<'enqueued' | 'drained' | 'p50Ms' | 'p99Ms' | 'healthy', number>

/** What is counted, and which way is better. */
const FIGURES: [figure: keyof Figures, what: string, better: Line['better']][] = [
  ['enqueued', `jobs/s enqueued, ${JOBS} of them, in bulk (ours: events dispatched)`, 'more'],
  ['drained', 'jobs/s claimed, begun and completed, with nothing to do', 'more'],
  [
    'p50Ms',
    `ms from enqueueing to the begin at ${PER_SECOND} jobs/s, p50 (ours: from the event)`,
    'less',
  ],
  ['p99Ms', 'the same, p99', 'less'],
  ['healthy', `jobs/s completed beside ${STUCK} of a target that is stuck`, 'more'],
]

/**
 * The outbox as a queue, beside queues on the same Postgres, one process each. Ours writes events, and from them a job for
 * each target; takes jobs of all targets in turn, as many at a time as each may have; renews leases of 30 s, refuses what
 * comes after them, and keeps a record of every job. pg-boss keeps its jobs, completes a batch as a whole, and takes what
 * a worker left behind after 15 minutes. graphile-worker deletes its jobs, and takes them after 4 hours.
 */
export async function compareQueue(): Promise<Line[]> {
  installPeers()
  const startPeer = async (name: string) =>
    startWorker('queue-peers.ts', [name, await createEmptyDatabase()], findNode())
  try {
    const figures = await interleaveFigures({
      tidings: async () => measure(await startWorker('queue-ours.ts', [await cloneDatabase()])),
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
    await closeCluster()
  }
}

/** A queue that loses a job, or begins one twice, ends or never answers. */
async function measure(queue: Worker): Promise<Figures> {
  const ask = async (line: string) => {
    queue.say(line)
    return JSON.parse(await queue.hear()) as Record<'perSecond' | 'p50Ms' | 'p99Ms', number>
  }
  try {
    await ask(`enqueue ${WARM_UP}`)
    await ask(`drain ${WARM_UP}`)
    const enqueued = (await ask(`enqueue ${JOBS}`)).perSecond
    const drained = (await ask(`drain ${JOBS}`)).perSecond
    const { p50Ms, p99Ms } = await ask(`pace ${PACED} ${PER_SECOND}`)
    await ask(`stick ${STUCK}`)
    await ask(`enqueue ${HEALTHY}`)
    const healthy = (await ask(`drain ${HEALTHY}`)).perSecond
    return { enqueued, drained, p50Ms, p99Ms, healthy }
  } finally {
    await queue.stop()
  }
}
