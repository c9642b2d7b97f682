import { describe, expect, test } from 'bun:test'
import { createValidator, InvalidRequest } from '../../../src/http/validation.ts'
import { gemoji } from 'gemoji'
import { splitEmoji, toEmoji } from '../../../src/log/channels/icon.ts'
import { toDisplayName, toSlug } from '../../../src/log/channels/name.ts'
import { fromLogSnag, fromPlainText } from '../../../src/log/events/new-event.ts'
import {
  explainTimestamp,
  parseIsoTimestamp,
  parseTimestamp,
} from '../../../src/log/events/timestamp.ts'
import { EventInput, isTooFarAhead } from '../../../src/log/events/schema.ts'

describe('contract §2 icons:', () => {
  test.each([
    ['😀', '😀'],
    ['❤', '❤️'],
    ['👩🏼‍❤️‍💋‍👨🏿', '👩🏼‍❤️‍💋‍👨🏿'],
    ['', undefined],
    ['a', undefined],
    ['#', undefined],
    ['😀 ', '😀'],
    ['😀\ufe0f', '😀'],
    ['❤‍🔥', '❤️‍🔥'],
    ['🏳‍🌈', '🏳️‍🌈'],
    ['1⃣', '1️⃣'],
    ['☝️🏽', '☝🏽'],
    ['❤\ufe0e', '❤️'],
    ['©', '©️'],
    ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    ['🇨🇭', '🇨🇭'],
    [':rocket:', '🚀'],
    [':+1: ', '👍'],
    [':hand_with_index_finger_and_thumb_crossed:', '🫰'],
    [':constructor:', undefined],
    [':rocket', undefined],
    [':rocket:!', undefined],
    [':woman_technologist::skin-tone-6:', '👩🏿‍💻'],
    [':rocket::skin-tone-2:', '🚀'],
    [':hand_with_index_finger_and_thumb_crossed::skin-tone-4:', '🫰🏽'],
    [':+1::skin-tone-7:', undefined],
    // Newer than every table: characters that Unicode keeps free for pictures.
    ['\u{1FABA}', '\u{1FABA}'],
    ['\u{1F8FF}'.repeat(2), undefined],
    ['🐦‍🐛', '🐦‍🐛'],
    [`👨${'\u200d👨'.repeat(4)}`, undefined],
    [`🐦${'\u0301'}`, undefined],
    ['😀😀', undefined],
    ['😀\u200d', undefined],
    ['\ufe0f', undefined],
    ['🏽', '🏽'],
    ['🇨', undefined],
    ['🇽🇽', undefined],
    ['🏴\u{e0075}\u{e0073}\u{e0074}\u{e0078}\u{e007f}', undefined],
    [`a${'\u0301'.repeat(20)}`, undefined],
    [`🏴${'\u{e0061}'.repeat(50)}`, undefined],
    ['😀'.repeat(21), undefined],
  ])('%p is accepted as %p', (text, emoji) => {
    expect(toEmoji(text)).toBe(emoji)
  })

  test('every emoji of the table is stored with its selectors, however it is spelled', () => {
    for (const { emoji } of gemoji) {
      const stored = toEmoji(emoji)
      expect([emoji, stored]).toEqual([emoji, expect.stringMatching(/^\p{RGI_Emoji}$/v)])
      expect(toEmoji(emoji.replaceAll('\ufe0f', ''))).toBe(stored)
      expect(splitEmoji(`${emoji} x`)).toEqual({ icon: stored ?? '', rest: ' x' })
    }
  })

  test.each([
    ['💾 Backup', '💾', ' Backup'],
    ['⚠ Disk full', '⚠️', ' Disk full'],
    [':rocket: Deployed', '🚀', ' Deployed'],
    [':nope: Deployed', undefined, ':nope: Deployed'],
    ['12:30: lunch', undefined, '12:30: lunch'],
    ['1⃣ one', '1️⃣', ' one'],
    ['👨‍👩‍👧‍👦x', '👨‍👩‍👧‍👦', 'x'],
    ['1️⃣ one', '1️⃣', ' one'],
    ['1 one', undefined, '1 one'],
    ['👨\u200dx', undefined, '👨\u200dx'],
    ['Backup 💾', undefined, 'Backup 💾'],
    ['', undefined, ''],
  ])('%p begins with %p', (text, icon, rest) => {
    expect(splitEmoji(text)).toEqual(icon === undefined ? { rest } : { icon, rest })
  })
})

describe('contract §2 timestamps:', () => {
  test.each([
    ['1970-01-01', 0],
    ['1970-01-01T00:00Z', 0],
    ['1970-01-01T00:00:00.001Z', 1],
    ['1970-01-01T00:00:00.0019Z', 1],
    ['1970-01-01T00:00:00,5Z', 500],
    ['1970-01-01T01:00:00+01:00', 0],
    ['1970-01-01T01:00:00+01', 0],
    ['1969-12-31T23:30:00-00:30', 0],
    ['19700101T000000Z', 0],
    ['19700101t0100+01', 0],
    ['1970-01-01T01:00:00+01:00[Europe/Paris]', 0],
    ['1970-01-01T01:00:00+01:00[!Europe/Paris][u-ca=hebrew]', 0],
    ['1970-01-01T00:00:00Z[]', undefined],
    ['1970-01-01T00:00:00[Europe/Paris]', undefined],
    ['19700101T000000', undefined],
    ['1970-01-01T00:00:60Z', 59_999],
    ['1900-02-29', undefined],
    ['2026-01-01T00:00:00', undefined],
    ['2026-01-31T24:00:00Z', undefined],
    ['2026-01-31T09:60:00Z', undefined],
    ['2026-01-31T09:30:61Z', undefined],
    ['2026-01-31T09:30:00+24:00', undefined],
    ['2026-13-01', undefined],
    ['2026-1-1', undefined],
    [' 2026-01-31', undefined],
    ['Sat, 31 Jan 2026 09:30:00 GMT', undefined],
    ['2026-01-01T00Z', undefined],
    ['2026-01-01T00:00:00.Z', undefined],
    ['2026-01-01T00:00:00+00:60', undefined],
    ['2026-W01-1', undefined],
    ['-2026-01-01', undefined],
    ['2026-01-01T00:00:00Z\n', undefined],
    ['０２０２６-01-01', undefined],
    ['0099-12-31T23:59:59Z', undefined],
    ['0099-12-31T23:59:59-01:00', Date.parse('0100-01-01T00:59:59Z')],
    ['0100-01-01T00:00:00+01:00', undefined],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799_999],
    ['9999-12-31T23:59:59-00:01', undefined],
  ])('%p is %p', (text, ms) => {
    expect(parseIsoTimestamp(text)).toBe(ms)
  })

  test.each([
    ['0', 0],
    ['1767322800', 1_767_322_800_000],
    ['1767322800.5', 1_767_322_800_500],
    ['1767322800123', 1_767_322_800_123],
    [1_767_322_800, 1_767_322_800_000],
    [1_700_000_000.25, 1_700_000_000_250],
    [100_000_000_000, 100_000_000_000],
    [-1, undefined],
    [8.64e15, undefined],
    ['-1', undefined],
    ['1e9', undefined],
    ['99999999999999999', undefined],
    ['2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5)],
  ])('the time %p of an event is %p', (timestamp, ms) => {
    expect(parseTimestamp(timestamp)).toBe(ms)
  })

  test.each([
    ['2026-01-02T03:04:05', 'Has no time zone; add Z or an offset, like +01:00'],
    ['20260102T030405', 'Has no time zone; add Z or an offset, like +01:00'],
    ['2026-01-02T03:04:05[Europe/Paris]', 'Has no time zone; add Z or an offset, like +01:00'],
    ['0001-01-01T00:00:00Z', 'Is the zero time of Go and .NET, which was never set'],
    ['0001-01-01T00:00:00.0000000', 'Is the zero time of Go and .NET, which was never set'],
    ['2026-02-30T00:00:00Z', 'Has a day, time or offset that does not exist'],
    ['20260101T240000Z', 'Has a day, time or offset that does not exist'],
    ['2026-01-02T03:04:05+01:60', 'Has a day, time or offset that does not exist'],
    ['9999-12-31T23:30:00-01:00', 'Must be ISO 8601 with a time zone, like 2026-11-20T09:30:00Z'],
    ['0099-01-02', 'Must be ISO 8601 with a time zone, like 2026-11-20T09:30:00Z'],
    ['yesterday', 'Must be ISO 8601 with a time zone, like 2026-11-20T09:30:00Z'],
  ])('%p is refused: %s', (text, reason) => {
    expect(explainTimestamp(text)).toBe(reason)
  })

  test('5 minutes in the future are accepted, 5 more seconds are not', () => {
    expect(isTooFarAhead(Date.now() + 299_000)).toBe(false)
    expect(isTooFarAhead(Date.now() + 305_000)).toBe(true)
  })
})

test.each([
  [' Payments ', 'Payments', 'payments'],
  ['Big \t payments', 'Big \t payments', 'big payments'],
  ['big_-_ payments', 'big_-_ payments', 'big_-_ payments'],
  ['C++', 'C++', 'c++'],
  ['C#', 'C#', 'c#'],
  ['CAFE\u0301', 'CAFÉ', 'café'],
  ['İ', 'İ', 'i̇'],
  ['\u03aa\u0301', '\u03aa\u0301', '\u0390'],
  ['Straße', 'Straße', 'straße'],
  ['\u3000全角\u3000名\u3000', '全角\u3000名', '全角 名'],
])('contract §2 the channel %p is displayed as %p and identified by %p', (name, display, slug) => {
  expect(toDisplayName(name)).toBe(display)
  expect(toSlug(name)).toBe(slug)
  expect(toSlug(slug)).toBe(slug)
})

const { parse } = createValidator(EventInput)

/** Returns the issues of an event with these fields, each as `field code`. */
function listIssues(fields: Partial<EventInput>): string[] {
  try {
    parse({ channelName: 'a', title: 't', ...fields })
    return []
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    return error.details.map(({ path, code }) => [...path, code].join(' '))
  }
}

test('contract §2 a channelName has invisible characters inside emoji alone', () => {
  const points = '\u0001\n\u00ad\u061c\u200b\u200d\u2028\u202e\ufeff\ufe0f\u{e0061}\u{e0100}'
  const odd = ['👨\u200d', '\u200d👨', '👨\u200d\u200d👩', 'a\u200d👩', '👨\u200da', '1\ufe0f']
  const within = [...points].flatMap(point => [`a${point}b`, `é${point}é`])
  for (const channelName of [...within, ...odd, 'a\ufe0f\u20e3'])
    expect([channelName, ...listIssues({ channelName })]).toEqual([
      ...[channelName, 'channelName invalid_format'],
    ])
  for (const emoji of ['👨‍👩‍👧‍👦', '🏳️‍⚧️', '❤️‍🔥', '👩🏽‍🚒', '1️⃣', '#️⃣', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇨🇭', '❤️', '🐦‍🔥', '👁️‍🗨️'])
    expect([emoji, ...listIssues({ channelName: `team ${emoji}` })]).toEqual([emoji])
})

test('contract §2 the length of a channelName counts after composition', () => {
  expect(listIssues({ channelName: 'e\u0301'.repeat(255) })).toEqual([])
  expect(listIssues({ channelName: 'e\u0301'.repeat(256) })).toEqual(['channelName too_long'])
})

test.each([
  ['', 'too_short'],
  [`https://example.com/${'x'.repeat(2_029)}`, 'too_long'],
  ['example.com', 'invalid_format'],
  ['javascript:alert(1)', 'invalid_format'],
  ['https://', 'invalid_format'],
  ['https://exa mple.com', 'invalid_format'],
  [' https://example.com', 'invalid_format'],
  ['https://example.com/\n', 'invalid_format'],
  ['https:///example.com', 'invalid_format'],
  ['https://example.com\\@example.org', 'invalid_format'],
  ['https://exam\u00adple.com', 'invalid_format'],
  ['https://example.com/\u202etxt', 'invalid_format'],
  ['https://example.com/\u0000', 'invalid_encoding'],
  ['https://ada@example.com', 'invalid_value'],
  ['https://:secret@example.com', 'invalid_value'],
])('contract §2 the url %p is %s', (url, code) => {
  expect(listIssues({ url })).toEqual([`url ${code}`])
})

describe("contract §10 LogSnag's body:", () => {
  const log = { channel: 'a', event: 'b' }

  test('its fields become ours, and absent notify is false', () => {
    expect(fromLogSnag(log)).toEqual({
      channelName: 'a',
      title: 'b',
      tags: [],
      userId: null,
      notify: false,
      level: 'normal',
    })
    expect(
      fromLogSnag({
        ...log,
        description: 'c',
        icon: '💰',
        user_id: 'd',
        notify: true,
        timestamp: 1.5,
      }),
    ).toEqual({
      channelName: 'a',
      title: 'b',
      description: 'c',
      icon: '💰',
      tags: [],
      userId: 'd',
      notify: true,
      level: 'normal',
      timestamp: 1.5,
    })
  })

  test('tags become metadata unchanged, and tags of the form key:value where they fit', () => {
    const tags = { plan: 'pro', n: 1, yes: true, none: null, deep: { a: 1 }, list: [1], '': '' }
    const event = fromLogSnag({ ...log, tags })
    expect(event.metadata).toBe(tags)
    expect(event.tags).toEqual(['plan:pro', 'n:1', 'yes:true', ':'])
  })

  test('tags over 50 characters and beyond the 20th are dropped', () => {
    const long = { a: 'x'.repeat(48), b: 'x'.repeat(49), c: '🚀'.repeat(48), d: '🚀'.repeat(49) }
    expect(fromLogSnag({ ...log, tags: long }).tags).toEqual([`a:${long.a}`, `c:${long.c}`])
    const many = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`k${n}`, n]))
    expect(fromLogSnag({ ...log, tags: many }).tags).toHaveLength(20)
  })
})

test.each([
  ['Up', { title: 'Up' }],
  ['  Up  \n', { title: 'Up' }],
  [
    '💾 Backup failed\nThe disk is full.',
    { icon: '💾', title: 'Backup failed', description: 'The disk is full.' },
  ],
  ['Up\r\n\r\n a\r\n b ', { title: 'Up', description: 'a\n b' }],
  ['\n\n💾\nBackup', { icon: '💾', title: 'Backup' }],
  ['💾', { title: '💾' }],
  ['💾 \n', { title: '💾' }],
  [':fire: Burning', { icon: '🔥', title: 'Burning' }],
  ['a=b&c=%20+', { title: 'a=b&c=%20+' }],
  [
    '\u001b[1;31m💥 FAIL\u001b[0m build\n\u001b[38;5;8mline 2\u001b[m',
    { icon: '💥', title: 'FAIL build', description: 'line 2' },
  ],
  ['\u009b1mbold\u009b0m and \u001b(B\u001b[?25lplain', { title: 'bold and plain' }],
  [
    '\u001b]0;window\u0007A \u001b]8;;https://a.test\u001b\\link\u001b]8;;\u001b\\',
    { title: 'A link' },
  ],
  ['\u001b]0;without an end\nUp', { title: 'Up' }],
  ['\u001bPq#0\u001b\\Up \u001b7and\u001b8 \u001bMdown\u001b', { title: 'Up and down' }],
  ['\u001b\u001b[m[31mred', { title: '[31mred' }],
])('contract §10 the text %p is the event %p', (text, event) => {
  expect(fromPlainText(text)).toEqual(event)
})

/** The starts of control sequences, and text that may or may not belong to them. */
const HOSTILE_STARTS = ['\u001b', '\u001b[', '\u001b]', '\u001bP', '\u009b']
const HOSTILE_UNITS = [
  ';#',
  ';',
  '#',
  '0',
  '[',
  ' ',
  'a;',
  '\u001b',
  '\u001b[',
  '\u001b[1;',
  '\u001b]0;',
  '\u009b',
]

test.each([8_192, 256 * 1024])(
  'contract §10 the work for a hostile text of %d characters is a small multiple of that for another',
  length => {
    /** Returns the processor time of 256 KiB for each text. */
    const measure = (texts: string[]) => {
      const before = process.cpuUsage()
      for (const text of texts)
        for (let done = 0; done < 256 * 1024; done += length) fromPlainText(text)
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const fill = (unit: string) => unit.repeat(length / unit.length)
    const hostile = HOSTILE_STARTS.flatMap(start =>
      HOSTILE_UNITS.map(unit => `hi${start}${fill(unit)}`),
    )
    const control = measure(hostile.map(() => fill('text')))
    expect(measure(hostile) / control).toBeLessThan(60)
  },
)
