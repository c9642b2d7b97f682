import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { toArray } from '../../../src/database/arrays.ts'
import { LEVELS, toRank } from '../../../src/log/channels/level.ts'
import type { Event, EventInput } from '../../../src/log/events/schema.ts'
import { STATES, type State } from '../../../src/log/events/state.ts'
import type { Thread } from '../../../src/log/events/thread-schema.ts'
import { fold } from '../../../src/log/threads/fold.ts'
import { expectExactCounts } from '../../support/counts.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

/** Its events without a level are high. */
const HIGH = 'ops'

type Step =
  | { kind: 'send'; events: { key: number | null; input: EventInput }[] }
  | { kind: 'hide' | 'restore' | 'remove'; places: number[] }
  | { kind: 'erase' }

const inputs = fc.record<EventInput>(
  {
    channelName: fc.constantFrom(HIGH, 'billing'),
    title: fc.constant('Disk full'),
    thread: fc.constantFrom('a', 'A', 'a '),
    state: fc.constantFrom(...STATES),
    level: fc.constantFrom(...LEVELS),
    timestamp: fc.integer({ min: 1, max: 1_700_000_000 }),
    userId: fc.constant('ada'),
  },
  { requiredKeys: ['channelName', 'title', 'thread'] },
)
const places = fc.array(fc.nat(), { minLength: 1, maxLength: 4 })
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      events: fc.array(fc.record({ key: fc.option(fc.nat(5)), input: inputs }), { maxLength: 5 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('hide' as const), places }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), places }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), places }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase' as const) }) },
)

/** An event, what was sent, and how it is told. */
interface Stored {
  event: Event
  input: EventInput
  isHidden: boolean
  telling: number | null
}

const isOver = (state: string | undefined) =>
  state === 'resolved' || state === 'succeeded' || state === 'failed'
const isOpen = (state: string | undefined) => state === 'firing' || state === 'running'
const toWorse = (state: string | undefined) =>
  state === 'firing' || state === 'failed' ? 2 : Number(state === 'running')

/** The threads that a log has by the rules, from all its events each time. */
class Oracle {
  stored: Stored[] = []
  lastSeq = 0
  /** The last event that was told aloud, by the seq of its thread. */
  loud = new Map<number, number | null>()

  /** Returns the visible events of the newest generation of a key. */
  newest({ channelName, thread }: Pick<EventInput, 'channelName' | 'thread'>): Event[] {
    const own = this.visible().filter(
      event => event.channelName === channelName && event.thread === thread,
    )
    const newest = Math.max(...own.map(({ threadSeq }) => threadSeq ?? 0))
    return own.filter(({ threadSeq }) => threadSeq === newest)
  }

  visible(): Event[] {
    return this.stored.filter(one => !one.isHidden).map(({ event }) => event)
  }

  /** A thread that comes back, or lost its own, has the last one of its visible events. */
  toLoud(threadSeq: number): number | null {
    const told = this.stored.filter(
      ({ event, isHidden, telling }) =>
        event.threadSeq === threadSeq && !isHidden && telling === null && event.level !== 'low',
    )
    if (!this.loud.has(threadSeq)) this.loud.set(threadSeq, told.at(-1)?.event.seq ?? null)
    return this.loud.get(threadSeq) ?? null
  }

  add(input: EventInput, event: Event): void {
    const last = this.newest(input).at(-1)
    const wasOver = !last || isOver(last.state)
    const isNew = !last || (wasOver && input.state !== 'resolved')
    const level =
      input.level ?? (isNew ? (input.channelName === HIGH ? 'high' : 'normal') : last.level)
    const state = input.state ?? (isNew ? undefined : last.state)
    expect(event).toMatchObject({
      thread: input.thread,
      threadSeq: isNew ? event.seq : last.threadSeq,
    })
    expect([event.level, event.state]).toEqual([level === 'normal' ? undefined : level, state])
    const isWorse =
      isNew ||
      toWorse(state) > toWorse(last.state) ||
      toRank(level ?? 'normal') > toRank(last.level ?? 'normal')
    const telling = wasOver && input.state === 'resolved' ? 2 : isWorse ? null : 1
    this.lastSeq = event.seq
    const { threadSeq = 0 } = event
    const isLoud = telling === null && level !== 'low'
    this.loud.set(threadSeq, isLoud ? event.seq : (this.loud.get(threadSeq) ?? null))
    this.stored.push({ event, input, isHidden: false, telling })
  }
}

async function expectEqual({ projectId }: TestTenant, oracle: Oracle): Promise<void> {
  const rows = await server.sql<
    { thread: Thread; severity: number | null; loud: number | null; seqs: number[] }[]
  >`
    select
      jsonb_strip_nulls(jsonb_build_object(
        'thread', t.key, 'threadSeq', t.thread_seq, 'channelId', c.public_id, 'channelName', c.name,
        'state', state_name(t.state), 'level', level_name(t.level), 'count', t.count,
        'openedAt', to_iso(t.opened_at), 'updatedAt', to_iso(t.updated_at), 'seq', t.last_seq
      )) as thread,
      t.severity, t.loud_seq::int as loud,
      to_json(array(
        select e.seq
        from thread_events e
        where e.project_id = t.project_id and e.thread_seq = t.thread_seq
        order by e.seq
      )) as seqs
    from threads t
      join channels c on c.project_id = t.project_id and c.id = t.channel_id
    where t.project_id = ${projectId}
    order by t.thread_seq
  `
  for (const threadSeq of oracle.loud.keys())
    if (!oracle.visible().some(event => event.threadSeq === threadSeq))
      oracle.loud.delete(threadSeq)
  const visible = Map.groupBy(oracle.visible(), ({ threadSeq }) => threadSeq ?? 0)
  const expected = [...visible]
    .sort(([a], [b]) => a - b)
    .map(([, events]) => {
      // An event that comes again is folded once.
      const folded = events
        .flatMap(event => [event, event])
        .reduce<Thread | undefined>(fold, undefined)!
      const { event, ...thread } = folded
      const isNewest = oracle.newest(events[0]!)[0] === events[0]
      const severity = toRank(thread.level ?? 'normal') * 2 + Number(thread.state === 'firing')
      return {
        thread: { ...thread, seq: event.seq } as unknown as Thread,
        severity: isNewest && isOpen(thread.state) ? severity : null,
        loud: oracle.toLoud(thread.threadSeq),
        seqs: events.map(({ seq }) => seq),
      }
    })
  expect([...rows]).toEqual(expected)
}

test('contract §2 rows of threads, the fold of the browser and the rules agree after any log', async () => {
  const run = async (made: Step[]) => {
    const tenant = await newTenant(server)
    const { projectId, v1, account, path } = tenant
    const oracle = new Oracle()
    await account.post(`${path}/channels`, { name: HIGH, level: 'high' })
    const bodies = new Map<number, EventInput>()
    for (const step of made) {
      if (step.kind === 'send') {
        const sent = await Promise.all(
          step.events.map(async ({ key, input }) => {
            if (key !== null && !bodies.has(key)) bodies.set(key, input)
            const body = (key === null ? undefined : bodies.get(key)) ?? input
            const headers = key === null ? {} : { 'idempotency-key': String(key) }
            const answer = await v1.post('/v1/events', body, headers)
            // 409: another request of this step has the same key.
            expect(answer.status).toBeOneOf(key === null ? [201] : [201, 409])
            return answer.status === 201 ? [{ input: body, event: answer.body.data as Event }] : []
          }),
        )
        for (const { input, event } of sent.flat().sort((a, b) => a.event.seq - b.event.seq))
          // A repeated key got the response of its event.
          if (event.seq > oracle.lastSeq) oracle.add(input, event)
      } else if (step.kind === 'erase') {
        await v1.request('/v1/users/ada', { method: 'DELETE' })
      } else {
        const { stored } = oracle
        const chosen = step.places.flatMap(place => stored[place % (stored.length || 1)] ?? [])
        const seqs = toArray(chosen.map(({ event }) => event.seq))
        if (step.kind === 'hide') {
          await server.sql`select hide_events(${projectId}, ${seqs}::bigint[])`
          for (const one of chosen) one.isHidden = true
        }
        if (step.kind === 'restore') {
          await server.sql`select restore_events(${projectId}, ${seqs}::bigint[])`
          for (const one of chosen) one.isHidden = false
        }
        if (step.kind === 'remove') {
          await server.sql`select delete_free_events(${projectId}, ${seqs}::bigint[], null)`
          oracle.stored = stored.filter(one => !chosen.includes(one))
        }
        if (step.kind !== 'restore')
          for (const { event } of chosen)
            if (oracle.loud.get(event.threadSeq ?? 0) === event.seq)
              oracle.loud.delete(event.threadSeq ?? 0)
      }
      await expectEqual(tenant, oracle)
    }
    const tellings = await server.sql`
      select seq::int, telling from events where project_id = ${projectId} order by seq
    `
    expect([...tellings]).toEqual(
      oracle.stored.map(({ event, telling }) => ({ seq: event.seq, telling })),
    )
    await expectExactCounts(server.sql, projectId)
  }
  // A first generation opens again while later ones, and its end, are hidden.
  const send = (state: State): Step => ({
    kind: 'send',
    events: [{ key: null, input: { channelName: HIGH, title: 'Disk full', thread: 'a', state } }],
  })
  const reopened: Step[] = [
    ...(['firing', 'resolved', 'firing', 'resolved', 'firing'] as const).map(send),
    { kind: 'hide', places: [1, 2, 3, 4] },
    { kind: 'restore', places: [2, 3, 4] },
  ]
  await fc.assert(fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 20 }), run), {
    numRuns: 20,
    endOnFailure: true,
    examples: [[reopened]],
  })
})
