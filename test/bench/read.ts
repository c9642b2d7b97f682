import { createPool } from '../../src/database/pool.ts'
import { connect, type Sql } from '../../src/database/sql.ts'
import { toListCursor } from '../../src/log/events/seq-ranges.ts'
import { buildHistogram } from '../../src/log/events/histogram.ts'
import { findNeighbours, listEventsJson, type PageQuery } from '../../src/log/events/read.ts'
import { parseSearch } from '../../src/log/events/search-query.ts'
import { createKey } from '../support/worlds/keys.ts'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import {
  BIG_PROJECT,
  createRandom,
  END_MS,
  ensureBenchDatabase,
  EVENTS,
  useDatabase,
} from './read-data.ts'
import { compareRead } from './read-plain.ts'
import { explainOnce } from './explain.ts'
import { makeKey, startTidings, stopCandidates } from './server.ts'
import { ARGUMENTS, printTable } from './table.ts'
import { load, median, requireWrk } from './wrk.ts'
import { listHourlyCounts } from '../support/counts.ts'

const RUNS = 300
const ROUNDS = 4
const SECONDS = 8
const HOUR_MS = 3_600_000
const BIG_EVENTS = EVENTS / 2

type Run = (sql: Sql) => Promise<unknown>

/** Returns a run of a query with arguments varied by `random` (0 to 1). */
type Query = (random: () => number) => Run

const search =
  (text: (random: () => number) => string, query: PageQuery = {}): Query =>
  random => {
    const { filters } = parseSearch(text(random))
    return sql => listEventsJson(sql, BIG_PROJECT, filters, query)
  }

const histogram =
  (text: string, days: number): Query =>
  random => {
    const toMs = END_MS - Math.floor(random() * 300) * 24 * HOUR_MS
    const range = { fromMs: toMs - days * 24 * HOUR_MS, toMs, nowMs: END_MS }
    return sql => buildHistogram(sql, BIG_PROJECT, parseSearch(text).filters, range)
  }

const deep =
  (text: string): Query =>
  random => {
    const seq = BigInt(Math.ceil(random() * BIG_EVENTS))
    const cursor = toListCursor({ direction: 'older', seq })
    return sql => listEventsJson(sql, BIG_PROJECT, parseSearch(text).filters, { cursor })
  }

const someDay = (random: () => number) =>
  new Date(END_MS - Math.floor(random() * 350) * 24 * HOUR_MS).toISOString().slice(0, 10)

const QUERIES: [name: string, aim: string, query: Query][] = [
  ['newest page', 'p99 10', search(() => '')],
  ['deep page', 'p99 10', deep('')],
  [
    'forward from anywhere',
    'p99 10',
    random => sql =>
      listEventsJson(sql, BIG_PROJECT, parseSearch('').filters, {
        after: Math.floor(random() * BIG_EVENTS),
      }),
  ],
  [
    'neighbours',
    'p99 10',
    random => sql => findNeighbours(sql, BIG_PROJECT, Math.ceil(random() * BIG_EVENTS)),
  ],
  ['channel', 'p95 25', search(random => `channel:channel-${Math.floor(random() * 21)}`)],
  ['channel, deep', 'p95 25', deep('channel:channel-19')],
  [
    'three channels',
    'p95 25',
    search(() => 'channel:channel-3 channel:channel-7 channel:channel-11'),
  ],
  ['without a channel', 'p95 25', search(() => '-channel:channel-0')],
  ['tag, common', 'p95 25', search(() => 'tag:common')],
  ['tag, common, deep', 'p95 25', deep('tag:common')],
  ['tag, medium', 'p95 25', search(() => 'tag:medium')],
  ['tag, medium, deep', 'p95 25', deep('tag:medium')],
  ['tag, rare', 'p95 25', search(() => 'tag:rare')],
  ['tag, only old', 'p95 25', search(() => 'tag:old')],
  ['tag, absent', 'p95 25', search(random => `tag:absent-${random()}`)],
  ['user', 'p95 25', search(random => `user:"user_${Math.ceil(random() * 100_000)}"`)],
  [
    'user by alias',
    'p95 25',
    search(random => `user:"u${Math.ceil(random() ** 4 * 100_000)}@example.com"`),
  ],
  ['source, common', 'p95 25', search(() => 'source:api')],
  ['source, rare', 'p95 25', search(() => 'source:cron')],
  ['source, absent', 'p95 25', search(random => `source:absent-${random()}`)],
  [
    'channel and tag',
    'p95 25',
    search(random => `channel:channel-${Math.floor(random() * 21)} tag:medium`),
  ],
  ['channel and absent tag', 'p95 25', search(() => 'channel:channel-2 tag:absent')],
  [
    'user and word',
    'p95 25',
    search(random => `user:"user_${Math.ceil(random() ** 4 * 1_000)}" alpha`),
  ],
  ['word, common', 'p95 100', search(() => 'alpha')],
  ['word, common, deep', 'p95 100', deep('alpha')],
  ['prefix, common', 'p95 100', search(() => 'ba')],
  ['prefix, two words', 'p95 100', search(() => 'bab dud')],
  ['prefix, two words, deep', 'p95 100', deep('bab dud')],
  ['word, rare', 'p95 100', search(() => 'quicksilver')],
  ['word, absent', 'p95 100', search(random => `zz${Math.floor(random() * 1e6)}`)],
  ['two common words that never occur together', 'p95 100', search(() => 'alpha omega')],
  ['negation', 'p95 100', search(() => 'ba -alpha -tag:common')],
  ['phrase', 'p95 100', search(() => '"ba be"')],
  [
    'a past hour',
    'p95 25',
    search(random => {
      const day = someDay(random)
      return `after:${day}T10:00Z before:${day}T11:00Z`
    }),
  ],
  ['before a day', 'p95 25', search(random => `before:${someDay(random)}`)],
  [
    'a word in a day',
    'p95 100',
    search(random => {
      const day = someDay(random)
      return `bab dud after:${day} before:${day}T23:59Z`
    }),
  ],
  ['histogram, 30 days', 'p95 150', histogram('', 30)],
  ['histogram, 30 days, channel', 'p95 150', histogram('channel:channel-4', 30)],
  ['histogram, a year', '-', histogram('', 365)],
  ['histogram, a day', '-', histogram('', 1)],
  ['histogram, 30 days, tag', '-', histogram('tag:medium', 30)],
  ['histogram, 30 days, common tag', '-', histogram('tag:common', 30)],
  [
    'sparklines of a day',
    '-',
    () => sql =>
      listHourlyCounts(sql, BIG_PROJECT, { fromMs: END_MS - 24 * HOUR_MS, toMs: END_MS }),
  ],
]

/**
 * Reads millions of events through the functions of src; compares ingest on such a database with an
 * empty one.
 */
export async function benchRead(): Promise<void> {
  requireWrk()
  const databaseUrl = await ensureBenchDatabase()
  if (ARGUMENTS.values['fill']) return closeCluster()
  const pool = createPool(databaseUrl, { name: 'api', max: 8 })
  const [only] = ARGUMENTS.positionals
  console.log(
    `${EVENTS} events in 100 projects, ${BIG_EVENTS} of them in the measured one; ms over ${RUNS} runs`,
  )
  for (const [name, aim, query] of QUERIES) {
    if (only && !name.includes(only)) continue
    const random = createRandom()
    const times: number[] = []
    for (let n = 0; n < RUNS + 10; n++) {
      const run = query(random)
      const startedAt = performance.now()
      await pool.run(run)
      // The first runs prepare statements.
      if (n >= 10) times.push(performance.now() - startedAt)
    }
    print(name, aim, times)
  }
  await pool.end()
  if (!ARGUMENTS.values['no-explain'])
    await explainOnce(
      databaseUrl,
      QUERIES.filter(([name]) => !only || name.includes(only)).map(([name, , query]) => [
        name,
        query(createRandom()),
      ]),
    )
  if (!only || only === 'plain') printTable(await compareRead())
  if (!only || only === 'ingest') await compareLoad(databaseUrl)
  await closeCluster()
}

function print(name: string, aim: string, times: number[]): void {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) =>
    (sorted[Math.floor(sorted.length * share)] ?? NaN).toFixed(1).padStart(7)
  console.log(
    `${name.padEnd(32)} p50 ${at(0.5)}   p95 ${at(0.95)}   p99 ${at(0.99)}   (aim ${aim})`,
  )
}

/** Runs rounds in turn on a copy of the big database and on an empty one. */
async function compareLoad(bigUrl: string): Promise<void> {
  const [big, empty] = [await useDatabase(bigUrl), await cloneDatabase()]
  const sql = connect(big, { name: 'bench', max: 1 })
  const { token } = await createKey(sql, {
    projectId: BIG_PROJECT,
    name: 'bench',
    limit: 1_000_000_000,
  })
  await sql.end()
  const servers = [await startTidings(big, token), await startTidings(empty, await makeKey(empty))]
  const rates: number[][] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    for (const [n, { url, headers }] of servers.entries()) {
      const { perSecond } = await load({
        url,
        headers,
        connections: 128,
        seconds: SECONDS,
        keyed: 0.3,
      })
      rates[n]?.push(perSecond)
    }
  }
  await stopCandidates(servers)
  const [onBig = NaN, onEmpty = NaN] = rates.map(median)
  console.log(
    `\ningest on ${EVENTS} events ${onBig.toFixed(0)}/s, on none ${onEmpty.toFixed(0)}/s: ${(onBig / onEmpty).toFixed(2)} (aim 0.8)`,
  )
}
