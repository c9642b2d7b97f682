import { describe, expect, test } from 'bun:test'
import {
  INITIAL,
  isUnpaused,
  reduce,
  toLabel,
  toPill,
  type LiveEvent,
  type LiveState,
} from '../../../../src/dashboard/app/live/pill.ts'

const LIVE: LiveEvent = { type: 'link', link: { kind: 'live' } }

function after(...events: LiveEvent[]): LiveState {
  return events.reduce(reduce, INITIAL)
}

const toClock = (ms: number) => `clock ${ms}`
const toText = (state: LiveState, nowMs = 0) => toLabel(toPill(state), nowMs, toClock)

describe('dashboard.md §4 the live pill', () => {
  test.each<[string, LiveEvent[]]>([
    ['Connecting', []],
    ['Live', [LIVE]],
    ['Paused', [LIVE, { type: 'pause', reason: 'manual' }]],
    [
      'Paused · 37 new',
      [LIVE, { type: 'pause', reason: 'scrolled' }, { type: 'waiting', count: 37 }],
    ],
    [
      'Paused · 999+ new',
      [LIVE, { type: 'pause', reason: 'focus' }, { type: 'waiting', count: 1_000 }],
    ],
    ['Reconnecting in 5 s', [{ type: 'link', link: { kind: 'reconnecting', atMs: 4_200 } }]],
    ['Reconnecting', [{ type: 'link', link: { kind: 'reconnecting', atMs: 0 } }]],
    ['Offline since clock 70', [{ type: 'link', link: { kind: 'offline', sinceMs: 70 } }]],
    ['Signed out', [{ type: 'link', link: { kind: 'signed_out' } }]],
    ['No access', [{ type: 'link', link: { kind: 'refused' } }]],
  ])('says %p', (text, events) => {
    expect(toText(after(...events))).toBe(text)
  })

  test('shows a failing connection instead of a pause, which persists afterwards', () => {
    const paused = after(LIVE, { type: 'pause', reason: 'manual' }, { type: 'waiting', count: 2 })
    const lost = reduce(paused, { type: 'link', link: { kind: 'reconnecting', atMs: 9_000 } })
    expect(toText(lost)).toBe('Reconnecting in 9 s')
    expect(toText(reduce(lost, LIVE))).toBe('Paused · 2 new')
  })

  test('shows the first moment of being offline', () => {
    const offline = (sinceMs: number): LiveEvent => ({
      type: 'link',
      link: { kind: 'offline', sinceMs },
    })
    expect(toText(after(offline(10), offline(20)))).toBe('Offline since clock 10')
    expect(toText(after(offline(10), LIVE, offline(20)))).toBe('Offline since clock 20')
  })

  test('resumes when the last of several reasons to pause is gone', () => {
    const both = after(
      LIVE,
      { type: 'pause', reason: 'scrolled' },
      { type: 'pause', reason: 'selection' },
    )
    const one = reduce(both, { type: 'release', reason: 'scrolled' })
    const none = reduce(one, { type: 'release', reason: 'selection' })
    const all = reduce(both, { type: 'resume' })
    expect([both, one, none, all].map(isUnpaused)).toEqual([false, false, true, true])
    expect(toPill(none).kind).toBe('live')
  })

  test('stays the same object if nothing changes, so that nothing is rendered', () => {
    const paused = after(LIVE, { type: 'pause', reason: 'manual' })
    expect(reduce(paused, { type: 'pause', reason: 'manual' })).toBe(paused)
    expect(reduce(paused, { type: 'release', reason: 'focus' })).toBe(paused)
    expect(reduce(paused, { type: 'waiting', count: 0 })).toBe(paused)
    expect(reduce(INITIAL, { type: 'resume' })).toBe(INITIAL)
  })
})
