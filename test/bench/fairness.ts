import { setPriority } from 'node:os'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { ATTACKS } from './fairness-attacks.ts'
import type { Timed, Victim } from './fairness-load.ts'
import { fillWorld, openWorld } from './fairness-world.ts'
import { startLineProcess, type LineProcess } from './feed-process.ts'
import { openPostgresClock, readProcessorMs } from './processor-time.ts'
import { makeKey, startTidings, stopCandidates } from './server.ts'
import { SHARE } from './table.ts'

const ROUNDS = SHARE < 1 ? 1 : 2
const REST_MS = 2_000
const ATTACK_MS = 4_000
/** How long Postgres must be idle before the next measurement, and the longest wait for that. */
const QUIET_MS = 500
const MAX_WAIT_MS = 20_000
const MAX_TIMES = 3
const MAX_P99_MS = 250
/**
 * The niceness of the bench. A busy machine gives it less time than others, and the attacker less
 * than the server. A negative one, for root, makes a busy machine look quiet.
 */
const NICE = Number(process.env['BENCH_NICE'] ?? 10)
const KINDS = [
  ...(['write', 'feed', 'delivery', 'subscribe', 'read', 'search'] as const),
  ...(['me', 'sign-in', 'readyz'] as const),
]

type Figures = Record<(typeof KINDS)[number], Timed>

/**
 * Measures what one organization notices of another one's worst requests. Each attack is measured
 * between rests, in turn. `bun run bench fairness <part of a name>` runs only some attacks.
 */
export async function benchFairness(): Promise<void> {
  setPriority(NICE)
  const only = process.argv[3] ?? ''
  const attacks = Object.keys(ATTACKS).filter(name => name.includes(only))
  const databaseUrl = await cloneDatabase()
  const filled = await fillWorld(databaseUrl)
  const server = await startTidings(databaseUrl, await makeKey(databaseUrl), {
    TRUSTED_PROXIES: '127.0.0.0/8',
    EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  })
  const attacker = await startLineProcess('fairness-load.ts', ['attacker'])
  setPriority(attacker.pid, NICE + 9)
  const world = await openWorld(filled, new URL(server.url).origin, attacker.ready.split(' ')[1]!)
  const victim = await startVictim(world.victim)
  try {
    const readPostgresMs = await openPostgresClock(filled.sql)
    const readMs = () => [readProcessorMs(server.pid), readPostgresMs()]
    // Warms up.
    await measure(victim, REST_MS)
    const rests: Figures[] = []
    const results: Result[] = []
    for (const name of attacks) {
      const result: Result = { name, rest: [], attack: [], statuses: {}, loads: [] }
      results.push(result)
      for (let round = 0; round < ROUNDS; round++) {
        result.rest.push(await measure(victim, REST_MS))
        attacker.say(JSON.stringify({ name, attacker: await world.newAttacker(round) }))
        await attacker.hear()
        const [startedMs, before] = [performance.now(), readMs()]
        result.attack.push(await measure(victim, ATTACK_MS))
        const tookMs = performance.now() - startedMs
        result.loads.push(readMs().map((ms, at) => (ms - before[at]!) / tookMs))
        attacker.say('stop')
        const statuses = JSON.parse(await attacker.hear()) as Record<string, number>
        for (const [status, n] of Object.entries(statuses))
          result.statuses[status] = (result.statuses[status] ?? 0) + n
        await waitUntilQuiet(filled.sql)
      }
      rests.push(...result.rest)
      if (result === results[0]) printHead()
      printResult(result)
    }
    printRest(rests)
  } finally {
    await Promise.all([attacker.stop(), victim.stop(), stopCandidates([server])])
    await world.close()
    await closeCluster()
  }
}

interface Result {
  name: string
  rest: Figures[]
  attack: Figures[]
  /** The number of the attacker's responses by status; 0 for connections that ended. */
  statuses: Record<string, number>
  /** Processor time in cores, of the server and of Postgres. */
  loads: number[][]
}

function startVictim(victim: Victim): Promise<LineProcess> {
  return startLineProcess('fairness-load.ts', ['victim', JSON.stringify(victim)])
}

async function measure(victim: LineProcess, ms: number): Promise<Figures> {
  victim.say(String(ms))
  return JSON.parse(await victim.hear()) as Figures
}

/** Resolves when the database has been idle for a while. */
async function waitUntilQuiet(sql: Sql): Promise<void> {
  const endMs = performance.now() + MAX_WAIT_MS
  let quietMs = 0
  while (quietMs < QUIET_MS && performance.now() < endMs) {
    await Bun.sleep(100)
    const [{ busy }] = await sql<[{ busy: number }]>`
      select count(*)::int as busy
      from pg_stat_activity
      where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
    `
    quietMs = busy === 0 ? quietMs + 100 : 0
  }
}

function printHead(): void {
  console.log(
    `Each cell: times the median at rest, and p99 in ms. Aims: at most ${MAX_TIMES} times, at most ${MAX_P99_MS} ms, nothing refused. A miss is bold.\n`,
  )
  console.log(`| | ${KINDS.join(' | ')} | refused | cores: server, Postgres | the attacker's responses |
| - | ${KINDS.map(() => '-:').join(' | ')} | -: | - | - |`)
}

function printResult({ name, rest, attack, statuses, loads }: Result): void {
  const cells = KINDS.map(kind => {
    const before = toFigures(rest, kind)
    const during = toFigures(attack, kind)
    const times = during.p50 / before.p50
    const cell = `${times.toFixed(1)}× ${during.p99.toFixed(0)}`
    return times > MAX_TIMES || during.p99 > MAX_P99_MS ? `**${cell}**` : cell
  })
  const refused = KINDS.reduce((sum, kind) => sum + toFigures(attack, kind).refused, 0)
  const load = [0, 1]
    .map(at => (loads.reduce((sum, one) => sum + one[at]!, 0) / loads.length).toFixed(1))
    .join(', ')
  const responses = Object.entries(statuses)
    .map(([status, n]) => `${n} × ${status === '0' ? 'closed' : status}`)
    .join(', ')
  console.log(
    `| ${name} | ${cells.join(' | ')} | ${refused > 0 ? `**${refused}**` : 0} | ${load} | ${responses} |`,
  )
}

function printRest(rests: Figures[]): void {
  const cells = KINDS.map(kind => {
    const { p50, p99 } = toFigures(rests, kind)
    return `${p50.toFixed(1)} / ${p99.toFixed(0)}`
  })
  console.log(`| at rest: p50 / p99 ms | ${cells.join(' | ')} | | | |`)
}

function toFigures(all: Figures[], kind: (typeof KINDS)[number]) {
  const took = all.flatMap(figures => figures[kind].took).sort((a, b) => a - b)
  const at = (share: number) => took[Math.floor(share * (took.length - 1))] ?? NaN
  const refused = all.reduce((sum, figures) => sum + figures[kind].refused, 0)
  return { p50: at(0.5), p99: at(0.99), refused }
}
