import { expect, test } from 'bun:test'
import { nextQuiet, quietUntil, type QuietHours } from '../../../src/delivery/push/quiet-hours.ts'

const ALL_DAYS = [1, 2, 3, 4, 5, 6, 7]
const daily = (from: string, to: string, timeZone: string, days = ALL_DAYS): QuietHours => ({
  ...{ days, from, to, timeZone },
})
const NIGHT = daily('22:00', '07:00', 'Europe/Berlin')
const FRIDAY = { ...NIGHT, days: [5] }
const LEAP = daily('02:30', '03:30', 'Europe/Berlin')
const WEEKEND = [daily('18:00', '00:00', 'UTC', [5]), daily('00:00', '12:00', 'UTC', [6, 7])]

test.each<[QuietHours[], string, string | null]>([
  // Berlin is an hour ahead of UTC in winter, two in summer.
  [[NIGHT], '2026-01-10T20:59:59.999Z', null],
  [[NIGHT], '2026-01-10T21:00:00.000Z', '2026-01-11T06:00:00.000Z'],
  [[NIGHT], '2026-01-11T06:00:00.000Z', null],
  [[NIGHT], '2026-07-11T04:59:30.500Z', '2026-07-11T05:00:00.000Z'],
  // The night of 29 March is an hour shorter, that of 25 October an hour longer.
  [[NIGHT], '2026-03-28T21:00:00.000Z', '2026-03-29T05:00:00.000Z'],
  [[NIGHT], '2026-10-24T20:00:00.000Z', '2026-10-25T06:00:00.000Z'],
  // A start that the clock skips: quiet from 3:00 on. A time that occurs twice is quiet twice.
  [[LEAP], '2026-03-29T00:59:59.000Z', null],
  [[LEAP], '2026-03-29T01:00:00.000Z', '2026-03-29T01:30:00.000Z'],
  [[LEAP], '2026-10-25T00:30:00.000Z', '2026-10-25T01:00:00.000Z'],
  [[LEAP], '2026-10-25T01:30:00.000Z', '2026-10-25T02:30:00.000Z'],
  // The night of Friday ends on Saturday. No other night is quiet.
  [[FRIDAY], '2026-01-09T21:00:00.000Z', '2026-01-10T06:00:00.000Z'],
  [[FRIDAY], '2026-01-10T21:00:00.000Z', null],
  [[FRIDAY], '2026-01-09T05:00:00.000Z', null],
  // Rows that meet or overlap are one time, also in other zones.
  [WEEKEND, '2026-01-09T19:00:00.000Z', '2026-01-10T12:00:00.000Z'],
  [[NIGHT, daily('06:30', '09:00', 'UTC')], '2026-01-10T21:00:00.000Z', '2026-01-11T06:00:00.000Z'],
  [[NIGHT, daily('06:00', '09:00', 'UTC')], '2026-01-10T21:00:00.000Z', '2026-01-11T09:00:00.000Z'],
  // The same time twice is a whole day, of 23 hours on 29 March.
  [[daily('00:00', '00:00', 'UTC', [6])], '2026-01-10T00:00:00.000Z', '2026-01-11T00:00:00.000Z'],
  [[daily('00:00', '00:00', 'UTC', [6])], '2026-01-11T00:00:00.000Z', null],
  [
    [daily('12:00', '12:00', 'Europe/Berlin', [6])],
    '2026-03-28T11:00:00.000Z',
    '2026-03-29T10:00:00.000Z',
  ],
  // It looks eight days ahead.
  [[daily('00:00', '00:00', 'UTC')], '2026-01-01T06:00:00.000Z', '2026-01-09T06:00:00.000Z'],
  [[], '2026-01-01T06:00:00.000Z', null],
])('quiet hours %j at %s end at %p', (rows, now, end) => {
  expect(quietUntil(rows, new Date(now))?.toISOString() ?? null).toBe(end)
})

// Times around the changes of 2026, in UTC.
const CHANGES = {
  'Europe/Berlin': ['2026-03-28T18:00Z', '2026-10-24T18:00Z'],
  'America/New_York': ['2026-03-07T20:00Z', '2026-10-31T20:00Z'],
  'Australia/Lord_Howe': ['2026-04-04T06:00Z', '2026-10-03T06:00Z'],
  'Asia/Kathmandu': ['2026-03-28T18:00Z'],
}

test('attention §3 quiet hours end when no minute of a row is left, over changes of summer time', () => {
  let seed = 20260329
  const random = (below: number) =>
    (seed = Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + 0x297a2d39) >>> 0 && (seed >>> 8) % below
  const pad = (value: number) => String(value).padStart(2, '0')
  const zones = Object.keys(CHANGES) as (keyof typeof CHANGES)[]
  const oracle = createOracle()
  let [quiet, waited] = [0, 0]
  for (let nth = 0; nth < 300; nth++) {
    const zone = zones[nth % zones.length]!
    const rows = Array.from({ length: 1 + random(4) }, () => {
      const from = random(96) * 15
      const to = nth % 5 === 0 ? from : random(1_440)
      const [start, end] = [from, to].map(at => `${pad(Math.floor(at / 60))}:${pad(at % 60)}`)
      const days = ALL_DAYS.filter(() => random(2) === 0)
      return daily(start!, end!, random(5) === 0 ? zones[random(4)]! : zone, days)
    })
    const starts = CHANGES[zone]
    const now = new Date(Date.parse(starts[random(starts.length)]!) + random(16 * 60) * 60_000)
    const expected = oracle(rows, now)
    if (expected) quiet++
    expect([rows, now, quietUntil(rows, now)]).toEqual([rows, now, expected])
    // The next ones begin at a minute before which no minute is in them.
    if (nth % 6 > 0 || rows.some(({ days }) => days.length === 0)) continue
    const next = nextQuiet(rows, now)
    const from = new Date(now)
    while (!oracle.isIn(rows, from)) from.setTime(from.getTime() + 60_000)
    if (from > now) waited++
    expect([rows, now, next]).toEqual([rows, now, { from, to: oracle(rows, from)! }])
  }
  expect(quiet).toBeGreaterThan(50)
  expect(waited).toBeGreaterThan(10)
})

/** Walks from minute to minute, and asks Intl for the local day and time. */
function createOracle() {
  const formats = new Map<string, Intl.DateTimeFormat>()
  const toLocal = (at: Date, timeZone: string) => {
    const options = { timeZone, weekday: 'short', hour: '2-digit', minute: '2-digit' } as const
    const format =
      formats.get(timeZone) ?? new Intl.DateTimeFormat('en-GB', { ...options, hourCycle: 'h23' })
    formats.set(timeZone, format)
    const [, weekday = '', time = ''] = /^(\w+),? (.*)$/.exec(format.format(at)) ?? []
    return { day: 1 + ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].indexOf(weekday), time }
  }
  const isIn = ({ days, from, to, timeZone }: QuietHours, at: Date) => {
    const { day, time } = toLocal(at, timeZone)
    if (from < to) return days.includes(day) && from <= time && time < to
    return time >= from ? days.includes(day) : time < to && days.includes(day === 1 ? 7 : day - 1)
  }
  const isAnyIn = (rows: QuietHours[], at: Date) => rows.some(row => isIn(row, at))
  const findEnd = (rows: QuietHours[], now: Date): Date | null => {
    const end = new Date(now)
    const latest = now.getTime() + 8 * 86_400_000
    while (end.getTime() < latest && isAnyIn(rows, end)) end.setTime(end.getTime() + 60_000)
    return end > now ? end : null
  }
  return Object.assign(findEnd, { isIn: isAnyIn })
}
