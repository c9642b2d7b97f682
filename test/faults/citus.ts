import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable, type Sql } from '../../src/database/sql.ts'
import { createHttpClient } from '../support/clients/http-client.ts'
import { readBalance, startCitus } from '../support/servers/citus.ts'
import { until } from '../support/until.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet, type Fleet } from './fleet.ts'
import { createRandom } from './random.ts'

const WORKERS = 3
const PROJECTS = 24
const DOWN_MS = 5_000
const RECOVERY_MS = 30_000
const PATIENCE_MS = 120_000
const RETRY_MS = 100

type Read = (after: number) => Promise<number[]>

/**
 * The seq checker with three servers on a coordinator and three worker nodes of Citus. Under load,
 * each worker node and then the coordinator is killed once, and started again. Reads of all
 * projects must be back within 30 s of the start.
 */
export async function runCitus({
  seed,
  events,
}: {
  seed: number
  events: number
}): Promise<RunResult> {
  await using cluster = await startCitus({ workers: WORKERS })
  const databaseUrl = await cluster.createDatabase()
  const recoveries: [string, number][] = []
  const result = await runSeq({
    seed,
    events,
    databaseUrl,
    async disturb({ projects, urls }) {
      for (const nth of [1, 2, 3, 0]) {
        await sleep(DOWN_MS)
        await cluster.kill(nth)
        await sleep(DOWN_MS)
        await cluster.start(nth)
        const startedMs = performance.now()
        for (const { key } of projects) await untilRead(urls()[nth % 3]!, key)
        const name = nth === 0 ? 'coordinator' : `worker node ${nth}`
        recoveries.push([name, Math.round(performance.now() - startedMs)])
      }
    },
  })
  const balance = await readBalance(databaseUrl)
  return {
    figures: {
      ...result.figures,
      ...Object.fromEntries(recoveries.map(([name, ms]) => [`${name} back after ms`, ms])),
      ...Object.fromEntries(
        balance.map(({ shards, events, bytes }, nth) => [
          `worker node ${nth + 1}`,
          `${shards} shards, ${events} events, ${(bytes / 1e6).toFixed(1)} MB`,
        ]),
      ),
    },
    problems: [
      ...result.problems,
      ...recoveries.flatMap(([name, ms]) =>
        ms > RECOVERY_MS ? [`the ${name} was back after ${ms} ms`] : [],
      ),
    ],
  }
}

/** Resolves when the server can read the log of the key's project. */
async function untilRead(url: string, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  await until(async () => (await fetch(`${url}/v1/events?limit=1`, { headers })).ok, PATIENCE_MS)
}

/**
 * Three servers write to the same projects while readers follow over `GET /v1/events?after=` and
 * over SQL. `disturb` is called under load.
 */
async function runSeq({
  seed,
  events,
  databaseUrl,
  disturb,
}: {
  seed: number
  events: number
  databaseUrl: string
  disturb(fleet: Fleet): Promise<void>
}): Promise<RunResult> {
  const fleet = await startFleet({ servers: 3, projects: PROJECTS, databaseUrl })
  try {
    const load = fleet.load({ clients: 48, random: createRandom(seed), total: events })
    let isDone = false
    const done = load.finished.then(() => (isDone = true))
    const following = Promise.all(
      fleet.projects.flatMap((project, nth) => {
        // Each HTTP reader uses another server.
        const url = fleet.urls()[nth % 3]!
        return [
          follow(`HTTP ${nth}`, readByHttp(url, project.key), () => isDone),
          follow(`SQL ${nth}`, readBySql(fleet.sql, project.id), () => isDone),
        ]
      }),
    )
    await Promise.all([done, disturb(fleet)])
    const tails = await following
    const verdict = await fleet.check()
    const stored = Number(verdict.figures['events'])
    const read = tails.reduce((sum, { last }) => sum + last, 0)
    if (read !== 2 * stored) verdict.problems.push(`${read} read of ${stored} stored, by two each`)
    return {
      figures: {
        ...verdict.figures,
        reads: tails.reduce((sum, { reads }) => sum + reads, 0),
        'seq out of place': tails.reduce((sum, { problems }) => sum + problems.length, 0),
      },
      problems: [...verdict.problems, ...tails.flatMap(({ problems }) => problems)],
    }
  } finally {
    await fleet.close()
  }
}

/**
 * Reads from the last seq until no more events will come, and records each one that is not the
 * next.
 */
async function follow(name: string, read: Read, isDone: () => boolean) {
  const problems: string[] = []
  let last = 0
  let reads = 0
  for (;;) {
    const wasDone = isDone()
    const seqs = await read(last)
    reads++
    for (const seq of seqs) {
      if (seq !== last + 1) problems.push(`${name} saw ${seq} after ${last}`)
      last = seq
    }
    if (wasDone && seqs.length === 0) return { problems, last, reads }
  }
}

function readByHttp(url: string, key: string): Read {
  const client = createHttpClient(url)
  const headers = { authorization: `Bearer ${key}` }
  return async after => {
    const path = `/v1/events?after=${after}&limit=100`
    let { status, text } = await client.request('GET', path, { headers })
    // While a part of the database is down.
    while (status === 503) {
      await sleep(RETRY_MS)
      ;({ status, text } = await client.request('GET', path, { headers }))
    }
    if (status !== 200) throw new Error(`The reader was answered ${status}: ${text}`)
    const { data } = JSON.parse(text) as { data: { items: { seq: number }[] } }
    return data.items.map(({ seq }) => seq)
  }
}

function readBySql(sql: Sql, projectId: string): Read {
  return async function read(after): Promise<number[]> {
    try {
      const rows = await sql<{ seq: number }[]>`
        select e.seq::int as seq
        from events e
        where e.project_id = ${projectId} and e.seq > ${after}
        order by e.seq
      `
      return rows.map(({ seq }) => seq)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await sleep(RETRY_MS)
      return read(after)
    }
  }
}
