import { afterEach, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findZoneFolder, isTimeZone, toWallClock } from '../../src/base/zone-rules.ts'
import { quietUntil } from '../../src/delivery/push/quiet-hours.ts'
import { isDue } from '../../src/server/schedule.ts'
import { makeFolder } from '../support/scratch.ts'

afterEach(() => delete process.env['TZDIR'])

/** Writes a file with the offset before all changes, the changes, and the rule after them. */
function writeZone(
  name: string,
  offset: number,
  changes: [atS: number, offset: number][],
  rule: string,
) {
  const folder = makeFolder()
  const header = (times: number) => {
    const bytes = Buffer.alloc(44)
    bytes.write('TZif2')
    bytes.writeUInt32BE(times, 32)
    bytes.writeUInt32BE(times === 0 ? 1 : times + 1, 36)
    bytes.writeUInt32BE(4, 40)
    return bytes
  }
  const types = [offset, ...changes.map(([, next]) => next)].map(seconds => {
    const bytes = Buffer.alloc(6)
    bytes.writeInt32BE(seconds)
    return bytes
  })
  const times = changes.map(([atS]) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(BigInt(atS))
    return bytes
  })
  mkdirSync(join(folder, name, '..'), { recursive: true })
  const first = [header(0), Buffer.alloc(6), Buffer.from('LMT\0')]
  const indexes = Buffer.from(changes.map((_, n) => n + 1))
  const second = [header(changes.length), ...times, indexes, ...types, Buffer.from('LMT\0')]
  writeFileSync(
    join(folder, name),
    Buffer.concat([...first, ...second, Buffer.from(`\n${rule}\n`)]),
  )
  process.env['TZDIR'] = folder
}

const toHour = (at: string, zone: string) =>
  toWallClock(new Date(at), zone).toISOString().slice(11, 16)

test('the rules of the system decide, and those of the runtime where it has none', () => {
  const at = Date.parse('2026-06-01T00:00:00Z') / 1_000
  writeZone('Europe/Berlin', 3_600, [[at, 5 * 3_600]], '<+05>-5')
  expect(findZoneFolder()).toBe(process.env['TZDIR'])
  expect(toHour('2026-05-31T23:59:00Z', 'Europe/Berlin')).toBe('00:59')
  expect(toHour('2026-06-01T00:00:00Z', 'Europe/Berlin')).toBe('05:00')
  expect(toHour('2026-07-01T12:00:00Z', 'America/New_York')).toBe('08:00')
  const quiet = { days: [1], from: '05:00', to: '06:00', timeZone: 'Europe/Berlin' }
  const end = new Date('2026-06-01T01:00:00Z')
  expect(quietUntil([quiet], new Date('2026-06-01T00:30:00Z'))).toEqual(end)
  process.env['TZDIR'] = '/nonexistent'
  expect(findZoneFolder()).toBeUndefined()
  expect(toHour('2026-07-01T12:00:00Z', 'Europe/Berlin')).toBe('14:00')
  const last = new Date('2026-05-31T12:00:00Z')
  writeZone(Intl.DateTimeFormat().resolvedOptions().timeZone, 5 * 3_600, [], '<+05>-5')
  const daily = { hour: 5, minute: 0 }
  const now = new Date('2026-06-01T00:30:00Z')
  expect(isDue({ attempted_at: last, succeeded_at: last }, daily, now)).toBe(true)
})

test.each([
  ['CET-1CEST,M3.5.0,M10.5.0/3', '2026-03-29T00:59:00Z', '01:59'],
  ['CET-1CEST,M3.5.0,M10.5.0/3', '2026-03-29T01:00:00Z', '03:00'],
  ['CET-1CEST,M3.5.0,M10.5.0/3', '2026-10-25T00:59:00Z', '02:59'],
  ['CET-1CEST,M3.5.0,M10.5.0/3', '2026-10-25T01:00:00Z', '02:00'],
  ['AEST-10AEDT,M10.1.0,M4.1.0/3', '2026-01-01T00:00:00Z', '11:00'],
  ['AEST-10AEDT,M10.1.0,M4.1.0/3', '2026-07-01T00:00:00Z', '10:00'],
  ['IST-1GMT0,M10.5.0,M3.5.0/1', '2026-01-01T00:00:00Z', '00:00'],
  ['IST-1GMT0,M10.5.0,M3.5.0/1', '2026-07-01T00:00:00Z', '01:00'],
  ['<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2026-03-29T00:59:00Z', '22:59'],
  ['<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2026-03-29T01:00:00Z', '00:00'],
  ['EET-2EEST,M3.4.4/50,M10.4.4/50', '2026-03-28T00:00:00Z', '03:00'],
  ['<+0330>-3:30', '2026-03-28T00:00:00Z', '00:00'],
])('the rule %s at %s is %s', (rule, at, expected) => {
  writeZone('Europe/Berlin', 0, [], rule)
  expect(toHour(at, 'Europe/Berlin')).toBe(expected)
})

test('a zone whose file is cut or damaged has the rules of the runtime', () => {
  const at = Date.parse('2026-06-01T00:00:00Z') / 1_000
  writeZone('Europe/Berlin', 0, [[at, 5 * 3_600]], '<+05>-5')
  const source = process.env['TZDIR'] ?? ''
  const whole = readFileSync(join(source, 'Europe/Berlin'))
  const damaged = [
    ...Array.from({ length: whole.length - 1 }, (_, bytes) => whole.subarray(0, bytes)),
    Buffer.concat([whole.subarray(0, 20), Buffer.alloc(24, 0xff), whole.subarray(44)]),
    Buffer.from(whole.toString('latin1').replace('<+05>-5', 'CET-x'), 'latin1'),
  ]
  for (const [n, file] of damaged.entries()) {
    process.env['TZDIR'] = makeFolder()
    mkdirSync(join(process.env['TZDIR'], 'Europe'))
    writeFileSync(join(process.env['TZDIR'], 'Europe/Berlin'), file)
    expect([n, toHour('2026-07-01T12:00:00Z', 'Europe/Berlin')]).toEqual([n, '14:00'])
    expect([n, findZoneFolder()]).toEqual([n, undefined])
  }
})

test('a file of a zone is read once', () => {
  writeZone('Asia/Tokyo', 0, [], '<+05>-5')
  expect(toHour('2026-07-01T12:00:00Z', 'Asia/Tokyo')).toBe('12:00')
  writeFileSync(join(process.env['TZDIR'] ?? '', 'Asia/Tokyo'), '')
  expect(toHour('2026-07-01T12:00:00Z', 'Asia/Tokyo')).toBe('12:00')
})

test('a name of a time zone leads to no other file', () => {
  for (const name of ['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+3']) {
    expect([name, isTimeZone(name)]).toEqual([name, true])
  }
  const paths = ['Europe', '../etc', 'Europe/../UTC', '/etc/localtime', 'UTC\n', 'x'.repeat(65)]
  for (const name of ['', 'Mars/Olympus', '+02:00', ...paths])
    expect([name, isTimeZone(name)]).toEqual([name, false])
})
