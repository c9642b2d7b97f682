import { expect, test } from 'bun:test'
import { toMuteEnd, toSettingChange } from '../../../../src/dashboard/app/channels/mute.ts'
import { filterEntries } from '../../../../src/dashboard/app/palette/match.ts'
import { toDuration } from '../../../../src/dashboard/app/time.ts'

const ALL = [
  { text: 'Mute this channel' },
  { text: 'Channels' },
  { text: '', name: 'Big-payments' },
  { text: '', name: 'Zürich' },
  { text: 'Theme: dark' },
]
const found = (typed: string) =>
  filterEntries(ALL, typed)
    .map(({ text, name }) => text || name)
    .join()

test.each([
  ['', 'Mute this channel,Channels,Big-payments,Zürich,Theme: dark'],
  ['  ', 'Mute this channel,Channels,Big-payments,Zürich,Theme: dark'],
  ['chan', 'Mute this channel,Channels'],
  ['channel mu', 'Mute this channel'],
  ['PAY', 'Big-payments'],
  ['ments', 'Big-payments'],
  ['pmts', 'Big-payments'],
  ['zurich', 'Zürich'],
  ['ar', 'Theme: dark'],
  ['chan none', ''],
  ['.*', ''],
])('dashboard: the palette finds for %p: %s', (typed, expected) => {
  expect(found(typed)).toBe(expected)
})

test('dashboard: the palette ranks prefixes before inner matches, and those before scattered letters', () => {
  const names = ['a-p-a-y', 'repay', 'pay'].map(text => ({ text }))
  expect(filterEntries(names, 'pay').map(({ text }) => text)).toEqual(['pay', 'repay', 'a-p-a-y'])
})

test("dashboard §7 a mute ends in the reader's time zone", () => {
  const now = new Date(2026, 10, 20, 23, 30)
  const end = (span: Parameters<typeof toMuteEnd>[0]) => new Date(toMuteEnd(span, now.getTime()))
  expect(end('hour')).toEqual(new Date(2026, 10, 21, 0, 30))
  expect(end('hours')).toEqual(new Date(2026, 10, 21, 7, 30))
  expect(end('morning')).toEqual(new Date(2026, 10, 21, 8, 0))
  expect(end('week')).toEqual(new Date(2026, 10, 27, 23, 30))
})

test('dashboard §7 undo restores a notification setting exactly', () => {
  const muteUntil = '2026-11-20T10:00:00.000Z'
  const inherited = { isDefault: true, isCollapseDefault: true, collapse: false } as const
  expect(toSettingChange({ ...inherited, state: 'mute', muteUntil })).toEqual({
    state: 'default',
    collapse: null,
  })
  const own = { isDefault: false, isCollapseDefault: false, collapse: false } as const
  expect(toSettingChange({ ...own, state: 'mute', muteUntil })).toEqual({
    state: 'mute',
    muteUntil,
    collapse: false,
  })
  expect(toSettingChange({ state: 'on', muteUntil: null, collapse: true })).toEqual({
    state: 'on',
    collapse: true,
  })
})

test.each([
  [0, '0ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_234, '1.2s'],
  [65_200, '1m'],
  [7_200_000, '2h'],
])('dashboard §5 %d ms are shown as %s', (ms, expected) => {
  expect(toDuration(ms, 'en-GB')).toBe(expected)
})
