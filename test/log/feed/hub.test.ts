import { describe, expect, test } from 'bun:test'
import { noFilters, type SearchFilters } from '../../../src/log/events/search-filters.ts'
import { createHub, type Hub, type Subscription } from '../../../src/log/feed/hub.ts'
import { toEventMessage, toMessage } from '../../../src/log/feed/messages.ts'
import type { FeedEvent } from '../../../src/log/feed/read-events.ts'

const PROJECT = 'p1'
const is = (...values: string[]) => ({ is: values, not: [] })

/** Returns a hub, and sockets that record their messages. */
function setUp() {
  const topics = new Map<string, Set<string[]>>()
  const hub = createHub((topic, text) => topics.get(topic)?.forEach(sent => sent.push(text)))
  function follow(cursor: number, filters: Partial<SearchFilters> = {}) {
    const sent: string[] = []
    const subscription: Subscription = {
      socket: {
        send: text => void sent.push(text),
        join: topic => topics.set(topic, (topics.get(topic) ?? new Set()).add(sent)),
        leave: topic => topics.get(topic)?.delete(sent),
        bufferedBytes: 0,
      },
      projectId: PROJECT,
      project: 'prj_1',
      filters: { ...noFilters(), ...filters },
      cursor,
    }
    const seqs = () => sent.map(text => JSON.parse(text).seq).filter(seq => seq !== undefined)
    return { subscription, sent, seqs }
  }
  return { hub, follow, topics }
}

function toEvent(seq: number, fields: Partial<FeedEvent['fields']> = {}, length = 0): FeedEvent {
  return {
    projectId: PROJECT,
    id: '',
    seq,
    text: toEventMessage('prj_1', seq, JSON.stringify('x'.repeat(length))),
    fields: {
      channelNames: ['chn_1', 'payments'],
      tags: [],
      source: 'api',
      users: [],
      searchText: '',
      event: () => JSON.parse('{}'),
      ...fields,
    },
    createdAtMs: 0,
  }
}

/** Publishes with the fields that the hub needs at the moment, as a fast tail does. */
function publish(hub: Hub, ...events: FeedEvent[]): void {
  for (const event of events) {
    expect(hub.publish(event, hub.listFollowed()[0]?.needsVersion ?? 0)).toBe(true)
  }
}

describe('joining', () => {
  test('at the position: new events are sent once, in order', () => {
    const { hub, follow } = setUp()
    const one = follow(5)
    expect(hub.add(one.subscription, 5)).toBe(true)
    expect(hub.goLiveIfNear(one.subscription)).toBe(true)
    publish(hub, toEvent(6), toEvent(7), toEvent(7), toEvent(6), toEvent(9))
    expect(one.seqs()).toEqual([6, 7, 9])
    expect(hub.toPosition(PROJECT)).toBe(9)
  })

  test('behind the position: only once the cursor has reached the kept events', () => {
    const { hub, follow } = setUp()
    const first = follow(10)
    hub.add(first.subscription, 10)
    hub.goLiveIfNear(first.subscription)
    const late = follow(3)
    hub.add(late.subscription, 99)
    expect(hub.toReplayEnd(late.subscription)).toBe(10)
    expect(hub.goLiveIfNear(late.subscription)).toBe(false)
    publish(hub, toEvent(11), toEvent(12))
    late.subscription.cursor = 10
    expect(hub.goLiveIfNear(late.subscription)).toBe(true)
    publish(hub, toEvent(13))
    expect(late.seqs()).toEqual([11, 12, 13])
    expect(first.seqs()).toEqual([11, 12, 13])
  })

  test('the floor rises while the kept events overflow, and the stream keeps reading', () => {
    const { hub, follow } = setUp()
    const late = follow(0)
    hub.add(late.subscription, 0)
    const other = follow(0, { tags: is('other') })
    hub.add(other.subscription, 0)
    for (let seq = 1; seq <= 2_000; seq++) publish(hub, toEvent(seq, {}, 1_000))
    const floor = hub.toReplayEnd(late.subscription)
    expect(floor).toBeGreaterThan(1_800)
    expect(hub.goLiveIfNear(late.subscription)).toBe(false)
    late.subscription.cursor = floor
    expect(hub.goLiveIfNear(late.subscription)).toBe(true)
    expect(late.seqs()).toEqual(Array.from({ length: 2_000 - floor }, (_, nth) => floor + nth + 1))
  })
})

test('an event larger than the whole buffer still reaches a stream that catches up', () => {
  const { hub, follow } = setUp()
  const late = follow(0)
  hub.add(late.subscription, 0)
  publish(hub, toEvent(1, {}, 300_000))
  expect(hub.goLiveIfNear(late.subscription)).toBe(false)
  expect(hub.toReplayEnd(late.subscription)).toBe(1)
})

test('a stream that leaves gets nothing more, and the last one leaves nothing behind', () => {
  const { hub, follow, topics } = setUp()
  const [one, two] = [follow(0), follow(0, { tags: is('a') })]
  for (const { subscription } of [one, two]) {
    hub.add(subscription, 0)
    hub.goLiveIfNear(subscription)
  }
  expect(hub.subscriptions).toBe(2)
  hub.remove(one.subscription)
  hub.remove(one.subscription)
  publish(hub, toEvent(1, { tags: ['a'] }))
  hub.remove(two.subscription)
  expect(one.sent).toEqual([])
  expect(two.seqs()).toEqual([1])
  expect(hub.subscriptions).toBe(0)
  expect(hub.listFollowed()).toEqual([])
  expect([...topics.values()].every(members => members.size === 0)).toBe(true)
})

describe('fields that filters need', () => {
  test('kept events without the needed fields are not given to a filter', () => {
    const { hub, follow } = setUp()
    const slow = follow(-5)
    hub.add(slow.subscription, 0)
    publish(hub, toEvent(1))
    const byUser = follow(0, { users: is('"ada"') })
    hub.add(byUser.subscription, 1)
    expect(hub.goLiveIfNear(byUser.subscription)).toBe(false)
    expect(hub.toReplayEnd(byUser.subscription)).toBe(1)
    expect(hub.listFollowed()[0]?.users).toEqual(['"ada"'])
  })
})

test('heartbeats carry the position for live streams, and the own cursor during catch-up', () => {
  const { hub, follow } = setUp()
  const [live, late] = [follow(7), follow(2)]
  hub.add(live.subscription, 7)
  hub.goLiveIfNear(live.subscription)
  hub.add(late.subscription, 7)
  hub.sendHeartbeats()
  expect(live.sent).toEqual([toMessage({ type: 'heartbeat', project: 'prj_1', head: 7 })])
  expect(late.sent).toEqual([toMessage({ type: 'heartbeat', project: 'prj_1', head: 2 })])
})

describe('deletions', () => {
  const toldOf = (sent: string[]) =>
    sent.map(text => JSON.parse(text)).map(({ type, seq }) => `${type} ${seq}`)

  test('are told to all, and an undo with the event to those that it matches, also while they catch up', () => {
    const { hub, follow } = setUp()
    const [live, late] = [follow(7), follow(2)]
    const [otherLive, otherLate] = [follow(7, { tags: is('a') }), follow(2, { tags: is('a') })]
    for (const { subscription } of [live, otherLive, late, otherLate]) hub.add(subscription, 7)
    for (const { subscription } of [live, otherLive]) hub.goLiveIfNear(subscription)
    hub.removeEvent(PROJECT, 5)
    const { needsVersion } = hub.listFollowed()[0]!
    expect(hub.restoreEvent(toEvent(5), needsVersion)).toBe(true)
    for (const { sent } of [live, late]) expect(toldOf(sent)).toEqual(['deleted 5', 'restored 5'])
    for (const { sent } of [otherLive, otherLate]) expect(toldOf(sent)).toEqual(['deleted 5'])
    hub.add(follow(0, { users: is('"ada"') }).subscription, 7)
    expect(hub.restoreEvent(toEvent(5), needsVersion)).toBe(false)
  })

  test('overtake an event that was read before: it is not sent after them', () => {
    const { hub, follow } = setUp()
    const [live, late] = [follow(0), follow(0)]
    for (const { subscription } of [live, late]) hub.add(subscription, 0)
    hub.goLiveIfNear(live.subscription)
    publish(hub, toEvent(1))
    hub.removeEvent(PROJECT, 1)
    hub.removeEvent(PROJECT, 2)
    publish(hub, toEvent(2), toEvent(3))
    expect(hub.isDeleted({ projectId: PROJECT, seq: 2 })).toBe(true)
    hub.goLiveIfNear(late.subscription)
    expect(toldOf(live.sent)).toEqual(['event 1', 'deleted 1', 'deleted 2', 'event 3'])
    expect(toldOf(late.sent)).toEqual(['deleted 1', 'deleted 2', 'event 3'])
  })

  test('leave no hole: a later subscription a restored event in its place', () => {
    const { hub, follow } = setUp()
    const slow = follow(0)
    hub.add(slow.subscription, 0)
    publish(hub, toEvent(1), toEvent(3), toEvent(4))
    const restore = () => hub.restoreEvent(toEvent(2), hub.listFollowed()[0]?.needsVersion ?? 0)
    expect([restore(), restore()]).toEqual([true, true])
    const late = follow(1)
    hub.add(late.subscription, 4)
    hub.goLiveIfNear(late.subscription)
    expect(late.seqs()).toEqual([2, 3, 4])
  })

  test('are remembered in a bounded number', () => {
    const { hub, follow } = setUp()
    hub.add(follow(0).subscription, 0)
    for (let seq = 1; seq <= 1_001; seq++) hub.removeEvent(PROJECT, seq)
    const isDeleted = (seq: number) => hub.isDeleted({ projectId: PROJECT, seq })
    expect([1, 2, 1_001].map(isDeleted)).toEqual([false, true, true])
  })
})

test('a project has at most 500 different filters', () => {
  const { hub, follow } = setUp()
  for (let nth = 0; nth < 500; nth++) {
    expect(hub.add(follow(0, { sources: is(`s${nth}`) }).subscription, 0)).toBe(true)
  }
  expect(hub.add(follow(0, { sources: is('one more') }).subscription, 0)).toBe(false)
  expect(hub.add(follow(0, { sources: is('s7') }).subscription, 0)).toBe(true)
  expect(hub.subscriptions).toBe(501)
})
