import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setNewest } from './functions.ts'

/** A file is read again after an hour, because the system gets updates. */
const KEPT_MS = 3_600_000
const MAX_ZONES = 1_000
/** The largest offset that RFC 9636 allows, rounded up. */
const MAX_OFFSET_S = 26 * 3_600

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
  const folder = toFolder()
  return readZone(folder, 'Europe/Berlin') && folder
}

/**
 * Returns a Date whose UTC fields are the wall clock of a zone. The rules are those of the system,
 * which get updates, and else those of the runtime.
 */
export function toWallClock(at: Date, timeZone: string): Date {
  const zone = NAME.test(timeZone) ? readZone(toFolder(), timeZone) : undefined
  if (zone) return new Date(at.getTime() + 1_000 * findOffset(zone, at.getTime() / 1_000))
  // Swedish times are written like ISO 8601.
  const text = at.toLocaleString('sv', { timeZone }).replace(' ', 'T')
  return new Date(Date.parse(`${text}Z`) + at.getUTCMilliseconds())
}

function toFolder(): string {
  return process.env['TZDIR'] || '/usr/share/zoneinfo'
}

interface Zone {
  /** The times of the changes, in seconds since 1970. */
  times: number[]
  /** The offsets from UTC in seconds: before the first change, and after each. */
  offsets: number[]
  /** The last line of the file. */
  rule: RegExpExecArray
}

const zones = new Map<string, { zone: Zone | undefined; readMs: number }>()

/** Returns the rules of a zone. Undefined if the file is missing, cut or damaged. */
function readZone(folder: string, name: string): Zone | undefined {
  const path = join(folder, name)
  const known = zones.get(path)
  if (known && performance.now() - known.readMs < KEPT_MS) return known.zone
  let zone: Zone | undefined
  try {
    zone = parseZone(readFileSync(path))
  } catch {}
  setNewest(zones, path, { zone, readMs: performance.now() }, MAX_ZONES)
  return zone
}

/** Parses a file of RFC 9636, version 2 or later. Undefined, or a RangeError, if it is invalid. */
function parseZone(file: Buffer): Zone | undefined {
  if (!/^TZif[2-9]/.test(file.toString('latin1', 0, 5))) return undefined
  const readCounts = (header: number) =>
    [20, 24, 28, 32, 36, 40].map(at => file.readUInt32BE(header + at)) as Counts
  const [utc, standard, leaps, times, types, letters] = readCounts(0)
  // The first block has 32 bits for each time.
  const header = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
  const second = readCounts(header)
  const count = second[3]
  const typeOf = header + 44 + count * 8
  const offsets = typeOf + count
  const end = offsets + second[4] * 6 + second[5] + second[2] * 12 + second[1] + second[0]
  const rule = RULE.exec(file.toString('latin1', end))
  const indexes = [0, ...file.subarray(typeOf, offsets)]
  if (!rule || indexes.some(index => index >= second[4])) return undefined
  const listed = indexes.map(index => file.readInt32BE(offsets + 6 * index))
  if (listed.some(offset => Math.abs(offset) > MAX_OFFSET_S)) return undefined
  const at = (n: number) => Number(file.readBigInt64BE(header + 44 + n * 8))
  return { times: Array.from({ length: count }, (_, n) => at(n)), offsets: listed, rule }
}

function findOffset({ times, offsets, rule }: Zone, atS: number): number {
  const next = times.findIndex(time => time > atS)
  if (next === -1 && rule[3] !== undefined) return findOffsetByRule(rule, atS)
  return offsets.at(next) ?? 0
}

type Counts = [
  utc: number,
  standard: number,
  leaps: number,
  times: number,
  types: number,
  letters: number,
]

/**
 * The last line of a file, which can be empty. With daylight saving time it is like
 * `CET-1CEST,M3.5.0,M10.5.0/3`.
 */
const RULE = (() => {
  const [name, offset] = ['(?:<[^>\\n]+>|[A-Za-z]+)', '[-+]?\\d{1,3}(?::\\d\\d){0,2}']
  const change = `,M(\\d{1,2})\\.([1-5])\\.([0-6])(?:/(${offset}))?`
  return new RegExp(`^\\n(?:${name}(${offset})(?:${name}(${offset})?${change}${change})?)?\\n$`)
})()

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
