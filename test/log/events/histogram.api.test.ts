import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { parseSearch } from '../../../src/log/events/search-query.ts'
import { matchesFilters, type SentEvent } from '../../support/naive-search.ts'
import type { Booted } from '../../support/servers/server.ts'
import type { TestProject } from '../../support/worlds/project.ts'
import { bootSearchProject, filters, NOW_MS, OWNERS } from '../../support/worlds/search-project.ts'

let server: Booted
let project: TestProject
let sent: SentEvent[]
beforeAll(async () => {
  ;({ server, project, sent } = await bootSearchProject())
})
afterAll(() => server[Symbol.asyncDispose]())

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
      const histogram = await buildHistogram(server.sql, project.id, filters, range, limits)
      const [from, to] = [Date.parse(histogram.from), Date.parse(histogram.to)]
      expect(from).toBeLessThanOrEqual(range.fromMs)
      expect(to).toBeGreaterThanOrEqual(range.toMs)
      const buckets = histogram.others.length
      expect(buckets).toBeLessThanOrEqual(60)
      expect(from + buckets * histogram.stepMs).toBe(to)
      const counts = new Array<number>(buckets).fill(0)
      for (const one of sent.filter(one => matchesFilters(one, filters, OWNERS))) {
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
    const histogram = await buildHistogram(server.sql, project.id, filters, range, limits)
    expect(histogram.completeSince).toBeNull()
    expect(histogram.total).toBeGreaterThan(30)
  }
})

test('a histogram whose budget ran out is exact from `completeSince` on', async () => {
  const range = { fromMs: NOW_MS - 9 * 86_400_000, toMs: NOW_MS, nowMs: NOW_MS }
  const { filters } = parseSearch('-tag:test')
  const timeLimitMs = 60_000
  const whole = await buildHistogram(server.sql, project.id, filters, range, { timeLimitMs })
  const partial = await buildHistogram(server.sql, project.id, filters, range, {
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
