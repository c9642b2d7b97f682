import type { Sql } from '../../src/db/sql.ts'
import { createHttpClient } from '../support/http-client.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'

type Read = (after: number) => Promise<number[]>

/**
 * Three servers write to the same projects while readers follow over `GET /v1/events?after=` and
 * over SQL.
 */
export async function runSeq({
  seed,
  events,
}: {
  seed: number
  events: number
}): Promise<RunResult> {
  const fleet = await startFleet({ servers: 3, projects: 3 })
  try {
    const load = fleet.load({ clients: 48, random: createRandom(seed), total: events })
    let isDone = false
    const done = load.finished.then(() => (isDone = true))
    const tails = await Promise.all(
      fleet.projects.flatMap((project, nth) => {
        // Each HTTP reader uses another server.
        const url = fleet.urls()[nth % 3]!
        return [
          follow(`HTTP ${nth}`, readByHttp(url, project.key), () => isDone),
          follow(`SQL ${nth}`, readBySql(fleet.sql, project.id), () => isDone),
        ]
      }),
    )
    await done
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
    const { status, text } = await client.request('GET', `/v1/events?after=${after}&limit=100`, {
      headers,
    })
    if (status !== 200) throw new Error(`The reader was answered ${status}: ${text}`)
    const { data } = JSON.parse(text) as { data: { items: { seq: number }[] } }
    return data.items.map(({ seq }) => seq)
  }
}

function readBySql(sql: Sql, projectId: string): Read {
  return async after => {
    const rows = await sql<{ seq: number }[]>`
      select e.seq::int as seq
      from events e
      where e.project_id = ${projectId} and e.seq > ${after}
      order by e.seq
    `
    return rows.map(({ seq }) => seq)
  }
}
