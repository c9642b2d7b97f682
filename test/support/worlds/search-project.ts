import { expect } from 'bun:test'
import fc from 'fast-check'
import { LEVELS } from '../../../src/log/channels/level.ts'
import {
  HAS_FIELDS,
  noFilters,
  toExactUser,
  type FilterGroup,
  type SearchFilters,
} from '../../../src/log/events/search-filters.ts'
import { STATES } from '../../../src/log/events/state.ts'
import type { SentEvent } from '../naive-search.ts'
import { boot, type Booted } from '../servers/server.ts'
import { newProject, type TestProject } from './project.ts'

const CHANNELS = ['Payments', 'ops', 'Sign ups']
const USERS = ['ada', '@ada', 'ada@example.com', 'bob', 'eve']
const SOURCES = ['api', 'stripe', 'cron']
const TAGS = [
  'vip',
  'test',
  'plan:pro',
  'old',
  '#vip',
  'odd\u0001tag',
  '\u0001',
  'it\'s \\ "x"',
  'é🦊',
]
const THREADS = ['deploy 42', 'disk', '!firing']
const WORDS = ['payment', 'pay', 'failed', 'alpha', 'omega', 'beta', 'of', '42']
/** The owner of each alias. */
export const OWNERS = new Map([
  ['@ada', 'ada'],
  ['ada@example.com', 'ada'],
])
/** Each hole is longer than a segment: the events lie in four segments. */
const HOLES = [60, 120, 180]
export const NOW_MS = Date.parse('2026-03-10T00:00:00Z')

/** A server with a project that has the same few hundred events in every run. */
export interface SearchProject extends AsyncDisposable {
  server: Booted
  project: TestProject
  sent: SentEvent[]
}

export async function bootSearchProject(): Promise<SearchProject> {
  const server = await boot()
  const project = await newProject(server)
  const other = await newProject(server)
  await project.post('/v1/identify', { user_id: 'ada', aliases: ['@ada', 'ada@example.com'] })
  const [events = []] = fc.sample(fc.array(event, { minLength: 240, maxLength: 240 }), {
    numRuns: 1,
    seed: 42,
  })
  const sent = await sendAll(server, project, events)
  // Very similar events of another tenant.
  await sendAll(server, other, events.slice(0, 100))
  return { server, project, sent, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const someOf = <Value>(values: readonly Value[], maxLength: number) =>
  fc.uniqueArray(fc.constantFrom(...values), { maxLength })
const moment = fc.integer({ min: 0, max: 8 * 24 * 60 }).map(minutes => NOW_MS - minutes * 60_000)

const inThread = fc.record({
  thread: fc.constantFrom(...THREADS),
  state: fc.constantFrom(undefined, ...STATES),
})
const anyEvent = fc.record({
  channelName: fc.constantFrom(...CHANNELS),
  title: fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 }).map(toText),
  description: fc.array(fc.constantFrom(...WORDS), { maxLength: 4 }).map(toText),
  icon: fc.constantFrom('💰', undefined),
  tags: someOf(TAGS, 3),
  metadata: fc.constantFrom<Record<string, unknown>[]>(
    ...[{}, {}, { amount: 1 }, { amount: '1', plan: null }],
    { order: { lines: [{ sku: 'b 12' }], paid: true, total: 12.5 } },
  ),
  userId: fc.option(fc.constantFrom(...USERS), { nil: null }),
  source: fc.constantFrom(...SOURCES),
  level: fc.constantFrom(undefined, ...LEVELS),
  timestamp: moment.map(ms => new Date(ms).toISOString()),
  isDeleted: fc.integer({ min: 0, max: 9 }).map(n => n === 0),
})

/** Two of five events are in a thread. */
const event = fc
  .tuple(
    anyEvent,
    fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 2, arbitrary: inThread }),
  )
  .map(([one, thread]) => ({ ...one, ...thread }))

/** Any filters without groups, mostly one or two conditions. */
const flatFilters: fc.Arbitrary<SearchFilters> = fc
  .record(
    {
      channels: choice([...CHANNELS, 'PAYMENTS', 'no such'], 2),
      users: choice([...USERS.map(toExactUser), 'AD', '@a', 'b', 'nobody', '"nobody"'], 2),
      sources: choice([...SOURCES, 'none'], 2),
      levels: choice(LEVELS, 2),
      states: choice(STATES, 2),
      threads: choice([...THREADS, 'Disk'], 2),
      tags: choice([...TAGS, 'absent'], 1),
      metadata: choice(
        ['amount=1', 'amount=', 'plan=null', 'order.lines.0.sku=b 12', 'order.paid=true', 'a.b=c'],
        1,
      ),
      has: choice(HAS_FIELDS, 1),
      words: choice(['pay', 'PAYMENT', 'fail', 'alpha', 'omega', '4', 'absent'], 1),
      phrases: choice(['pay of', 'alpha omega', 'payment', 'failed 42'], 1),
      after: fc.option(moment, { nil: null }),
      before: fc.option(moment, { nil: null }),
    },
    { requiredKeys: [] },
  )
  .map(some => ({ ...noFilters(), ...some }))

/** Any filters, with up to two levels of groups. */
export const filters: fc.Arbitrary<SearchFilters> = fc.oneof(
  { weight: 2, arbitrary: flatFilters },
  { weight: 1, arbitrary: withGroups(flatFilters, flatFilters) },
  { weight: 1, arbitrary: withGroups(flatFilters, withGroups(flatFilters, flatFilters)) },
)

function withGroups(base: fc.Arbitrary<SearchFilters>, alternative: fc.Arbitrary<SearchFilters>) {
  const group: fc.Arbitrary<FilterGroup> = fc.record({
    isExcluded: fc.boolean(),
    filters: fc.array(alternative, { minLength: 1, maxLength: 3 }),
  })
  return fc
    .tuple(
      fc.oneof(fc.constant(noFilters()), base),
      fc.array(group, { minLength: 1, maxLength: 2 }),
    )
    .map(([filters, groups]) => ({ ...filters, groups }))
}

function choice<Value extends string>(values: readonly Value[], maxLength: number) {
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant({ is: [] as Value[], not: [] as Value[] }) },
    { weight: 2, arbitrary: someOf(values, maxLength).map(is => ({ is, not: [] as Value[] })) },
    {
      weight: 1,
      arbitrary: fc.record({ is: someOf(values, maxLength), not: someOf(values, maxLength) }),
    },
  )
}

function toText(words: string[]): string {
  return words.join(' ')
}

/** Sends events one after another with holes between them; deletes those marked as deleted. */
async function sendAll(
  server: Booted,
  { id, post }: TestProject,
  events: Omit<SentEvent, 'seq'>[],
): Promise<SentEvent[]> {
  const all: SentEvent[] = []
  for (const [n, { isDeleted, ...event }] of events.entries()) {
    if (HOLES.includes(n)) {
      await server.sql`
        update event_logs set last_seq = last_seq + 20000 where project_id = ${id}
      `
    }
    const { status, body } = await post('/v1/events', event)
    expect(status).toBe(201)
    const { seq, level, state, threadSeq } = body.data
    all.push({ ...event, seq, level, state, threadSeq, isDeleted })
  }
  const hidden = all.filter(one => one.isDeleted).map(({ seq }) => seq)
  await server.sql`select hide_events(${id}, ${`{${hidden.join()}}`}::bigint[])`
  return all
}
