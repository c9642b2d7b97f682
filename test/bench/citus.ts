import { readBalance, startCitus } from '../support/servers/citus.ts'
import { createMeasureWith, KEYED, print } from './ingest.ts'
import { readProcessorMs } from './processor-time.ts'
import { makeKey, startTidings, stopCandidates, toBearer, type Candidate } from './server.ts'
import { requireWrk } from './wrk.ts'

const PROJECTS = 24
const WORKER_NODES = [0, 1, 2, 4]

/**
 * Measures durable events over HTTP on Citus, with one, two and four worker nodes, beside plain
 * Postgres of the same version. The processor time is that of all nodes of a cluster.
 */
export async function benchCitus(): Promise<void> {
  requireWrk()
  await using clusters = new AsyncDisposableStack()
  const candidates: (Candidate & { databaseUrl: string; keys: string[] })[] = []
  const readPostgresMs = new Map<string, () => number>()
  try {
    for (const workers of WORKER_NODES) {
      const name =
        workers === 0 ? 'plain Postgres' : `${workers} worker node${workers > 1 ? 's' : ''}`
      const cluster = clusters.use(await startCitus({ workers }))
      const databaseUrl = await cluster.createDatabase({ isDistributed: workers > 0 })
      const keys: string[] = []
      while (keys.length < PROJECTS) keys.push(await makeKey(databaseUrl))
      readPostgresMs.set(name, () =>
        cluster.pids().reduce((sum, pid) => sum + readProcessorMs(pid), 0),
      )
      const server = await startTidings(databaseUrl, keys[0] ?? '')
      candidates.push({ ...server, name, databaseUrl, keys })
    }
    const measure = createMeasureWith(() => NaN)
    const contenders = candidates.map(({ headers, ...one }) => ({
      ...one,
      lone: headers,
      headers: one.keys.map(toBearer),
      readPostgresMs: readPostgresMs.get(one.name) ?? (() => NaN),
    }))
    await measure(contenders, { connections: 128, keyed: KEYED, rounds: 1 })
    for (const [title, some] of [
      [`${PROJECTS} projects`, contenders],
      ['one project', contenders.map(one => ({ ...one, headers: one.lone }))],
    ] as const) {
      const results = await measure(some, { connections: 128, keyed: KEYED })
      print(`${title}, 128 connections, 30 % with an Idempotency-Key`, results)
      const toUs = ({ serverUs, postgresUs }: (typeof results)[string]) => serverUs + postgresUs
      const plain = toUs(results['plain Postgres']!)
      for (const [name, result] of Object.entries(results)) {
        const us = toUs(result)
        console.log(
          `${name.padEnd(18)} ${us.toFixed(1)} µs per event   ${(us / plain).toFixed(2)} times`,
        )
      }
      if (some !== contenders) continue
      for (const { name, databaseUrl } of candidates.slice(1)) {
        const balance = await readBalance(databaseUrl)
        const nodes = balance.map(({ events, shards }) => `${events} in ${shards} shards`)
        console.log(`${name.padEnd(18)} events of the nodes: ${nodes.join(', ')}`)
      }
    }
  } finally {
    await stopCandidates(candidates)
  }
}
