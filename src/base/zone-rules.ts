import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An IANA name. It becomes a path, so it has no dots. */
const NAME = /^[A-Za-z][\w+-]{0,31}(?:\/[A-Za-z][\w+-]{0,31}){0,2}$/

/** Returns true if the runtime knows a time zone of this name. */
export function isTimeZone(name: string): boolean {
  if (!NAME.test(name)) return false
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

/** Returns the folder of the system's rules of time zones. Undefined if it has none. */
export function findZoneFolder(): string | undefined {
  const folder = process.env['TZDIR'] || '/usr/share/zoneinfo'
  return readZone(folder, 'Europe/Berlin') && folder
}

/**
 * Returns a Date whose UTC fields are the wall clock of a zone. The rules are those of the system,
 * which get updates, and else those of the runtime.
 */
export function toWallClock(at: Date, timeZone: string): Date {
  const file = NAME.test(timeZone)
    ? readZone(process.env['TZDIR'] || '/usr/share/zoneinfo', timeZone)
    : undefined
  if (file) return new Date(at.getTime() + 1_000 * findOffset(file, at.getTime() / 1_000))
  // Swedish times are written like ISO 8601.
  const text = at.toLocaleString('sv', { timeZone }).replace(' ', 'T')
  return new Date(Date.parse(`${text}Z`) + at.getUTCMilliseconds())
}

function readZone(folder: string, name: string): Buffer | undefined {
  try {
    const file = readFileSync(join(folder, name))
    return /^TZif[2-9]/.test(file.toString('latin1', 0, 5)) ? file : undefined
  } catch {
    return undefined
  }
}

/** Returns the offset from UTC in seconds by a file of RFC 9636, version 2 or later. */
function findOffset(file: Buffer, atS: number): number {
  const readCounts = (header: number) =>
    [20, 24, 28, 32, 36, 40].map(at => file.readUInt32BE(header + at)) as Counts
  const [utc, standard, leaps, times, types, letters] = readCounts(0)
  // The first block has 32 bits for each time.
  const header = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
  const second = readCounts(header)
  const count = second[3]
  const typeOf = header + 44 + count * 8
  const offsets = typeOf + count
  let passed = 0
  while (passed < count && file.readBigInt64BE(header + 44 + passed * 8) <= atS) passed++
  const end = offsets + second[4] * 6 + second[5] + second[2] * 12 + second[1] + second[0]
  const rule = passed === count ? RULE.exec(file.toString('latin1', end).trim()) : null
  if (rule) return findOffsetByRule(rule, atS)
  return file.readInt32BE(offsets + 6 * (passed === 0 ? 0 : file.readUInt8(typeOf + passed - 1)))
}

type Counts = [
  utc: number,
  standard: number,
  leaps: number,
  times: number,
  types: number,
  letters: number,
]

/** The last line of a zone with daylight saving time, such as `CET-1CEST,M3.5.0,M10.5.0/3`. */
const RULE =
  /^(?:<[^>]+>|[A-Za-z]+)([-+\d:]+)(?:<[^>]+>|[A-Za-z]+)([-+\d:]*),M(\d+)\.(\d)\.(\d)(?:\/([-+\d:]+))?,M(\d+)\.(\d)\.(\d)(?:\/([-+\d:]+))?$/

/** Returns the offset after the last listed change. */
function findOffsetByRule(rule: RegExpExecArray, atS: number): number {
  // POSIX counts offsets to the west.
  const standard = -toSeconds(rule[1])
  const summer = rule[2] ? -toSeconds(rule[2]) : standard + 3_600
  const year = new Date((atS + standard) * 1_000).getUTCFullYear()
  const start = toChange(year, rule.slice(3, 7)) - standard
  const end = toChange(year, rule.slice(7, 11)) - summer
  const isSummer = start < end ? start <= atS && atS < end : !(end <= atS && atS < start)
  return isSummer ? summer : standard
}

/** Returns the wall clock of a change in seconds, such as the last Sunday of March at 3:00. */
function toChange(year: number, [month, week, weekday, time]: (string | undefined)[]): number {
  const first = new Date(Date.UTC(year, Number(month) - 1, 1)).getUTCDay()
  const lastDay = new Date(Date.UTC(year, Number(month), 0)).getUTCDate()
  const day = 1 + ((Number(weekday) - first + 7) % 7) + (Number(week) - 1) * 7
  const date = Date.UTC(year, Number(month) - 1, day > lastDay ? day - 7 : day)
  return date / 1_000 + (time === undefined ? 7_200 : toSeconds(time))
}

function toSeconds(text = ''): number {
  const [hours = 0, minutes = 0, seconds = 0] = text.replace(/^[-+]/, '').split(':').map(Number)
  return (text.startsWith('-') ? -1 : 1) * (hours * 3_600 + minutes * 60 + seconds)
}
