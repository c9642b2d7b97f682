import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { expectExactCounts, listHourlyCounts } from '../../support/counts.ts'
import { matchesFilters } from '../../support/naive-search.ts'
import { forProcess } from '../../support/for-file.ts'
import { newProject } from '../../support/worlds/project.ts'
import { bootSearchProject, filters, NOW_MS, OWNERS } from '../../support/worlds/search-project.ts'
import { openSql } from '../../support/sql.ts'

const HOUR_MS = 3_600_000
const NOON_MS = Date.parse('2026-03-10T12:00:00Z')

const world = forProcess(bootSearchProject)

test('histograms count the events that lists find, with every way of counting', async () => {
  const range = fc
    .tuple(fc.integer({ min: 0, max: 9 * 86_400_000 }), fc.integer({ min: 1, max: 9 * 86_400_000 }))
    .map(([before, length]) => ({
      fromMs: NOW_MS - before - length,
      toMs: NOW_MS - before,
      nowMs: NOW_MS,
    }))
  const some = fc.oneof(
    filters,
    filters.map(({ channels }) => ({ ...noFilters(), channels })),
  )
  await fc.assert(
    fc.asyncProperty(some, range, async (filters, range) => {
      const limits = { candidatesBeforeIndex: 0, timeLimitMs: 10_000 }
      const histogram = await buildHistogram(
        world.server.sql,
        world.project.id,
        filters,
        range,
        limits,
      )
      const [from, to] = [Date.parse(histogram.from), Date.parse(histogram.to)]
      expect(from).toBeLessThanOrEqual(range.fromMs)
      expect(to).toBeGreaterThanOrEqual(range.toMs)
      const buckets = histogram.others.length
      expect(buckets).toBeLessThanOrEqual(60)
      expect(from + buckets * histogram.stepMs).toBe(to)
      const counts = new Array<number>(buckets).fill(0)
      for (const one of world.sent.filter(one => matchesFilters(one, filters, OWNERS))) {
        const bucket = Math.floor((Date.parse(one.timestamp) - from) / histogram.stepMs)
        if (counts[bucket] !== undefined) counts[bucket]++
      }
      const rows = [...histogram.channels.map(({ counts }) => counts), histogram.others]
      expect(counts.map((_, n) => rows.reduce((sum, row) => sum + (row[n] ?? 0), 0))).toEqual(
        counts,
      )
      expect(histogram.total).toBe(counts.reduce((sum, n) => sum + n, 0))
      expect(histogram.isPartial).toBe(false)
    }),
    { numRuns: 150 },
  )
})

test('a histogram of channels that are alternatives has no budget, nor one without them', async () => {
  const range = { fromMs: NOW_MS - 9 * 86_400_000, toMs: NOW_MS, nowMs: NOW_MS }
  for (const text of ['channel:ops OR channel:payments', '-(channel:ops OR channel:"Sign ups")']) {
    const { filters } = parseSearch(text)
    const limits = { timeLimitMs: 0, firstBatch: 30 }
    const histogram = await buildHistogram(
      world.server.sql,
      world.project.id,
      filters,
      range,
      limits,
    )
    expect(histogram.completeSince).toBeNull()
    expect(histogram.total).toBeGreaterThan(30)
  }
})

test('a histogram whose budget ran out is exact from `completeSince` on', async () => {
  const range = { fromMs: NOW_MS - 9 * 86_400_000, toMs: NOW_MS, nowMs: NOW_MS }
  const { filters } = parseSearch('-tag:test')
  const timeLimitMs = 60_000
  const whole = await buildHistogram(world.server.sql, world.project.id, filters, range, {
    timeLimitMs,
  })
  const partial = await buildHistogram(world.server.sql, world.project.id, filters, range, {
    timeLimitMs: 0,
    firstBatch: 30,
  })
  expect(whole.isPartial).toBe(false)
  expect(partial.isPartial).toBe(true)
  expect(partial.total).toBeLessThan(whole.total)
  const first =
    (Date.parse(partial.completeSince ?? '') - Date.parse(partial.from)) / partial.stepMs
  const late = ({ counts }: { counts: number[] }) => counts.slice(Math.ceil(first))
  for (const channel of partial.channels) {
    expect(late(channel)).toEqual(late(whole.channels.find(({ id }) => id === channel.id)!))
  }
})

test('hours are in UTC, regardless of the time zone of the session or timestamp', async () => {
  const { id, post } = await newProject(world.server)
  const odd = openSql(world.server.databaseUrl, { settings: { TimeZone: 'Asia/Kathmandu' } })
  for (const timestamp of [
    '2026-03-10T11:59:59.999Z',
    '2026-03-10T17:45:00+05:45',
    '2026-03-10T12:59:59Z',
  ]) {
    await post('/v1/events', { channelName: 'c', title: 't', timestamp })
  }
  await odd`select hide_events(${id}, '{3}')`
  await odd`select restore_events(${id}, '{3}')`
  await expectExactCounts(world.server.sql, id)
  const range = { fromMs: NOON_MS - HOUR_MS, toMs: NOON_MS + HOUR_MS, nowMs: NOON_MS }
  for (const sql of [world.server.sql, odd]) {
    const { from, channels } = await listHourlyCounts(sql, id, range)
    expect([from, channels[0]?.hourly]).toEqual(['2026-03-10T11:00:00.000Z', [1, 2]])
    const histogram = await buildHistogram(sql, id, noFilters(), range)
    expect([histogram.stepMs, histogram.others.length, histogram.total]).toEqual([120_000, 60, 3])
    expect(histogram.channels[0]?.counts[29]).toBe(1)
    expect(histogram.channels[0]?.counts[30]).toBe(1)
    expect(histogram.channels[0]?.counts[59]).toBe(1)
  }
  await odd.end()
})

test('a histogram shows the channels with the most events, and the others as a sum', async () => {
  const { id, post } = await newProject(world.server)
  for (let channel = 0; channel < 12; channel++) {
    for (let n = 0; n <= channel; n++) {
      const timestamp = new Date(NOON_MS).toISOString()
      await post('/v1/events', { channelName: `channel ${channel}`, title: 't', timestamp })
    }
  }
  const histogram = await buildHistogram(world.server.sql, id, noFilters(), { nowMs: NOON_MS })
  expect(histogram.to).toBe('2026-03-10T12:00:00.000Z')
  expect(histogram.total).toBe(0)
  const later = await buildHistogram(world.server.sql, id, noFilters(), { nowMs: NOON_MS + 1 })
  expect([later.stepMs, later.others.length, later.total]).toEqual([HOUR_MS, 60, 78])
  expect(later.channels.map(({ name, counts }) => [name, counts.at(-1)])).toEqual(
    [11, 10, 9, 8, 7, 6, 5, 4].map(n => [`channel ${n}`, n + 1]),
  )
  expect(later.others.at(-1)).toBe(1 + 2 + 3 + 4)
})

test('a histogram whose range is empty or in the future has no events', async () => {
  const { id, post } = await newProject(world.server)
  await post('/v1/events', { channelName: 'c', title: 't' })
  const far = Date.parse('9999-12-31T23:59:59.999Z')
  for (const [fromMs, toMs] of [
    [far, far],
    [far, 0],
    [Date.now() + 2 * HOUR_MS, far],
  ]) {
    const range = { fromMs, toMs, nowMs: Date.now() }
    expect((await buildHistogram(world.server.sql, id, noFilters(), range)).total).toBe(0)
  }
  const always = { fromMs: Date.parse('0100-01-01T00:00:00Z'), toMs: far, nowMs: Date.now() }
  expect((await buildHistogram(world.server.sql, id, noFilters(), always)).total).toBe(1)
})
