import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable, type Sql } from '../../src/database/sql.ts'
import { createHttpClient } from '../support/clients/http-client.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet, type Fleet } from './fleet.ts'
import { createRandom } from './random.ts'

const RETRY_MS = 100

type Read = (after: number) => Promise<number[]>

interface SeqOptions {
  seed: number
  events: number
  projects?: number
  /** The URL of an empty database that the caller runs. */
  databaseUrl?: string
  /** Called under load, to disturb it. */
  disturb?(fleet: Fleet): Promise<void>
}

/**
 * Three servers write to the same projects while readers follow over `GET /v1/events?after=` and
 * over SQL.
 */
export async function runSeq({
  seed,
  events,
  projects = 3,
  databaseUrl,
  disturb,
}: SeqOptions): Promise<RunResult> {
  const fleet = await startFleet({ servers: 3, projects, ...(databaseUrl && { databaseUrl }) })
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
    await Promise.all([done, disturb?.(fleet)])
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
