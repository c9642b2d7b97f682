import { setTimeout as sleep } from 'node:timers/promises'
import { toArray } from '../../src/database/arrays.ts'
import { createHttpClient, type HttpClient } from '../support/clients/http-client.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import type { RunResult } from './ledger-check.ts'
import { createRandom, type Random } from './random.ts'
import { openSql } from '../support/sql.ts'

const EXPECTED = new Set([201, 409, 503])
/** Every tenth event has a key. */
const KEYED = 0.1
const CHANNELS = 20
const SETTLE_MS = 30_000
const CHECK_MS = 600_000

/**
 * The events of one client in little memory: they are numbered 1, 2, 3, …, and unacknowledged ones
 * are kept by number.
 */
interface Account {
  sent: number
  unknown: Set<number>
  /** The sum of the seqs in acknowledged answers. */
  seqs: bigint
}

/** Clients that post at a steady rate. */
export interface SoakLoad {
  /** Sets the rate of all clients, in events/s; Infinity for the maximum, 0 for none. */
  setRate(perSecond: number): void
  /**
   * Returns the latencies of answers since the last call, in ms, and the number of 201 among them.
   */
  take(): { latenciesMs: number[]; acknowledged: number }
  /** Counts of answers by status, and of connection failures by message. */
  outcomes: ReadonlyMap<string, number>
  /** Resolves when all clients are done; open events with a key are sent again for 30 s. */
  stop(): Promise<void>
  /** Compares acknowledged with stored events, in one statement. */
  check(databaseUrl: string): Promise<RunResult>
}

export function startSoakLoad({
  servers,
  projects,
  shares,
  clients,
  seed,
}: {
  servers(): readonly string[]
  projects: readonly { id: string; key: string }[]
  /** The second project's share of the events; the first has the rest. */
  shares: { second: number }
  clients: number
  seed: number
}): SoakLoad {
  const outcomes = new Map<string, number>()
  const oddities: string[] = []
  const accounts: Account[] = []
  let latenciesMs: number[] = []
  let acknowledged = 0
  let perSecond = 0
  let deadlineMs = Infinity

  const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

  async function send(client: HttpClient, body: string, headers: Record<string, string>) {
    const startedMs = performance.now()
    let answer: RawAnswer
    try {
      answer = await client.request('POST', '/v1/events', { headers, body })
    } catch (error) {
      count(error instanceof Error ? error.message : String(error))
      return undefined
    }
    latenciesMs.push(performance.now() - startedMs)
    count(String(answer.status))
    if (!EXPECTED.has(answer.status) && oddities.length < 20)
      oddities.push(`a client was answered ${answer.status} ${answer.text}`)
    if (answer.status !== 201) return undefined
    acknowledged++
    return /"seq":(\d+)/.exec(answer.text)?.[1]
  }

  async function runClient(nth: number, account: Account, random: Random): Promise<void> {
    const kept = new Map<string, HttpClient>()
    let dueMs = performance.now() + random.next() * 1_000
    while (deadlineMs === Infinity) {
      if (perSecond === 0) {
        await sleep(50)
        dueMs = performance.now()
        continue
      }
      const everyMs = (clients / perSecond) * 1_000
      // Events that an outage delayed are not made up for.
      dueMs = Math.max(dueMs + everyMs, performance.now() - everyMs)
      const waitMs = dueMs - performance.now()
      if (waitMs > 1) await sleep(waitMs)

      const n = ++account.sent
      account.unknown.add(n)
      const project = projects[random.next() < shares.second ? 1 : 0]!
      const isKeyed = random.next() < KEYED
      const headers = {
        authorization: `Bearer ${project.key}`,
        'content-type': 'application/json',
        ...(isKeyed && { 'idempotency-key': `${seed}-${nth}-${n}` }),
      }
      const body = `{"channelName":"Channel ${n % CHANNELS}","title":"New payment","metadata":{"client":${nth},"n":${n}}}`
      for (;;) {
        const server = random.pick(servers())
        const client = kept.get(server) ?? createHttpClient(server)
        kept.set(server, client)
        const seq = await send(client, body, headers)
        if (seq !== undefined) {
          account.unknown.delete(n)
          account.seqs += BigInt(seq)
          break
        }
        // A restarted server has another address.
        for (const [url, old] of kept) {
          if (servers().includes(url)) continue
          old.close()
          kept.delete(url)
        }
        await sleep(20 + random.below(80))
        // Without a key the outcome is unknown: it must not be sent again.
        if (!isKeyed || performance.now() > deadlineMs) break
      }
    }
    for (const client of kept.values()) client.close()
  }

  const random = createRandom(seed)
  const running = Promise.all(
    Array.from({ length: clients }, (_, nth) => {
      const account: Account = { sent: 0, unknown: new Set(), seqs: 0n }
      accounts.push(account)
      return runClient(nth, account, random.fork(nth))
    }),
  )

  return {
    outcomes,
    setRate: rate => void (perSecond = rate),
    take() {
      const taken = { latenciesMs, acknowledged }
      latenciesMs = []
      acknowledged = 0
      return taken
    },
    async stop() {
      if (deadlineMs === Infinity) deadlineMs = performance.now() + SETTLE_MS
      await running
    },
    async check(databaseUrl) {
      const ids = projects.map(({ id }) => id)
      const { figures, problems } = await compare(databaseUrl, { ids, accounts })
      return { figures, problems: [...oddities, ...problems] }
    },
  }
}

interface Found {
  client: number
  known: number
  seqs: string | null
  unknown: number
  again: number
  last: number
}

/**
 * Checks each client: every event of known outcome exists once, and the seqs equal those of the
 * answers.
 */
async function compare(
  databaseUrl: string,
  { ids, accounts }: { ids: readonly string[]; accounts: readonly Account[] },
): Promise<RunResult> {
  const settings = { statement_timeout: CHECK_MS, work_mem: '64MB' }
  const sql = openSql(databaseUrl, { settings })
  try {
    const open = accounts.flatMap(({ unknown }, client) => [...unknown].map(n => ({ client, n })))
    const rows = await sql<Found[]>`
      with open as materialized (
        select o.client, o.n
        from unnest(
          ${toArray(open.map(({ client }) => client))}::int[], ${toArray(open.map(({ n }) => n))}::int[]
        ) as o (client, n)
      ), stored as (
        select
          (e.metadata ->> 'client')::int as client, (e.metadata ->> 'n')::int as n, min(e.seq) as seq,
          count(*) as times
        from events e
        where e.project_id = any(${toArray(ids)}::uuid[])
        group by 1, 2
      )
      select
        s.client, count(*) filter (where o.n is null)::int as known,
        sum(s.seq) filter (where o.n is null)::text as seqs, count(o.n)::int as unknown,
        sum(s.times - 1)::int as again, max(s.n) as last
      from stored s
        left join open o on o.client = s.client and o.n = s.n
      group by s.client
    `
    const logs = await sql<{ last_seq: string; events: string }[]>`
      select l.last_seq, count(e.seq) as events
      from event_logs l
        left join events e on e.project_id = l.project_id
      where l.project_id = any(${toArray(ids)}::uuid[])
      group by l.project_id, l.last_seq
    `
    const problems = logs
      .filter(({ last_seq, events }) => last_seq !== events)
      .map(({ last_seq, events }) => `last_seq is ${last_seq} for ${events} events`)
    const found = new Map(rows.map(row => [row.client, row]))
    const sums = { acknowledged: 0, stored: 0, lost: 0, again: 0, unknown: open.length }
    for (const [client, { sent, unknown, seqs }] of accounts.entries()) {
      const due = sent - unknown.size
      const row = found.get(client)
      const lost = due - (row?.known ?? 0)
      sums.acknowledged += due
      sums.stored += (row?.known ?? 0) + (row?.unknown ?? 0)
      sums.lost += lost
      sums.again += row?.again ?? 0
      if (lost !== 0) problems.push(`client ${client}: ${lost} of ${due} acknowledged are LOST`)
      else if (BigInt(row?.seqs ?? 0) !== seqs)
        problems.push(`client ${client}: the seqs of its events differ from the answers`)
      if (row && row.again > 0) problems.push(`client ${client}: ${row.again} were made twice`)
      if (row && row.last > sent) problems.push(`client ${client}: nobody sent its ${row.last}`)
    }
    return {
      figures: {
        acknowledged: sums.acknowledged,
        stored: sums.stored,
        lost: sums.lost,
        'made twice': sums.again,
        'of unknown outcome': sums.unknown,
      },
      problems,
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}
