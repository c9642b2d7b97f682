import { readFileSync, readdirSync } from 'node:fs'
import type { Sql } from '../../src/database/sql.ts'
import { listWorkers, type Program } from '../support/servers/process.ts'
import { listPostgres, type Fleet } from './fleet.ts'
import type { Follower } from './follower.ts'
import type { SoakLoad } from './soak-load.ts'

/** One server at a moment: its program and its workers. */
interface ServerSample {
  /** The life of a server: `1.3` is the third one of the second server. */
  life: string
  /** Seconds since its start. */
  ageS: number
  rssMb: number
  files: number
}

/** A sample, taken every few seconds; undefined fields could not be read. */
export interface Sample {
  /** Seconds since the beginning. */
  atS: number
  servers: ServerSample[]
  /** A life is identified by the first process. */
  postgres: { life: string; rssMb: number; pssMb: number; ownMb: number; processes: number }
  backends: number | undefined
  outboxRows: number | undefined
  /** The age of the oldest delivery, or of the oldest undispatched event, in seconds. */
  outboxAgeS: number | undefined
  perSecond: number
  postP99Ms: number | undefined
  feedP99Ms: number | undefined
}

/** A server's current life. */
export interface Life {
  name: string
  startedMs: number
}

export interface Sampled {
  fleet: Fleet
  load: SoakLoad
  followers: readonly Follower[]
  lives: readonly Life[]
  /** Milliseconds since the last sample, and since the beginning. */
  lastedMs: number
  atMs: number
}

export async function takeSample(sampled: Sampled): Promise<Sample> {
  const { fleet, load, followers, lives, lastedMs, atMs } = sampled
  const { latenciesMs, acknowledged } = load.take()
  const delaysMs = followers.flatMap(({ delaysMs }) => delaysMs.splice(0))
  const pids = listPostgres(fleet.dataDir ?? '')
  const rolled = pids.map(readRollup)
  const sum = (name: string) => rolled.reduce((all, one) => all + (one.get(name) ?? 0), 0) / 1024
  const asked = await ask(fleet.sql).catch(() => undefined) // Postgres may be down.
  return {
    atS: atMs / 1_000,
    servers: fleet.programs.flatMap((program, nth) => {
      const { name, startedMs } = lives[nth]!
      const measured = measure(program)
      if (!measured) return []
      return [{ life: name, ageS: (performance.now() - startedMs) / 1_000, ...measured }]
    }),
    postgres: {
      life: String(pids[0]),
      rssMb: sum('Rss'),
      pssMb: sum('Pss'),
      ownMb: sum('Pss_Anon'),
      processes: pids.length,
    },
    backends: asked?.backends,
    outboxRows: asked?.rows,
    outboxAgeS: asked?.age_s,
    perSecond: acknowledged / (lastedMs / 1_000),
    postP99Ms: toP99(latenciesMs),
    feedP99Ms: toP99(delaysMs),
  }
}

async function ask(sql: Sql): Promise<{ backends: number; rows: number; age_s: number }> {
  const [row] = await sql<[{ backends: number; rows: number; age_s: number }]>`
    select
      (
        select count(*)::int from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend'
      ) as backends,
      count(*)::int as rows,
      greatest(
        0,
        extract(epoch from now() - min(o.since)),
        (
          select extract(epoch from now() - min(e.created_at))
          from delivery_cursors c
            join event_logs l on l.project_id = c.project_id and l.last_seq > c.seq
            join lateral (
              select n.created_at from events n
              where n.project_id = c.project_id and n.seq > c.seq
              order by n.seq
              limit 1
            ) e on true
        )
      )::float8 as age_s
    from outbox o
  `
  return row
}

/** Returns memory and open files of a server and its workers; undefined while it is down. */
function measure(program: Program): { rssMb: number; files: number } | undefined {
  try {
    const pids = [program.pid, ...listWorkers(program)].filter(
      (pid, nth) => nth === 0 || isThere(pid),
    )
    return {
      rssMb: pids.reduce((sum, pid) => sum + (readRollup(pid).get('Rss') ?? 0), 0) / 1024,
      files: pids.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0),
    }
  } catch {
    return undefined
  }
}

function isThere(pid: number): boolean {
  return readRollup(pid).size > 0
}

/** Returns the memory of a process in KB by name; empty if it has ended. */
function readRollup(pid: number): Map<string, number> {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    return new Map(
      [...text.matchAll(/^(\w+): +(\d+) kB$/gm)].map(([, name = '', kb]) => [name, Number(kb)]),
    )
  } catch {
    return new Map()
  }
}

function toP99(values: number[]): number | undefined {
  return values.sort((a, b) => a - b)[Math.floor(0.99 * (values.length - 1))]
}
