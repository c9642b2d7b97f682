import { expect, test } from 'bun:test'
import postgres from 'postgres'
import { scanLog, type ScanBatch, type ScanLimits } from '../../../src/log/events/log-scan.ts'
import type { ResolvedFilters } from '../../../src/log/events/resolved-filters.ts'

const none = { is: [], not: [] }
const resolved = {
  channelIds: undefined,
  references: undefined,
  sources: none,
  levels: none,
  states: none,
  threads: none,
  tags: none,
  metadata: none,
  texts: [],
  groups: [],
  ranges: [{ first: 1n, last: 10_000n }],
} as unknown as ResolvedFilters

const canceled = () =>
  Object.assign(new postgres.PostgresError('canceled' as never), { code: '57014' })

/** Scans a log whose batches of more than `most` candidates end by a statement timeout. */
async function scan(
  most: (batch: ScanBatch) => number,
  filters = resolved,
  limits: ScanLimits = { timeLimitMs: 10_000 },
) {
  const sizes: number[] = []
  const options = { direction: 'older', from: undefined, wanted: 50, ...limits } as const
  const reached = await scanLog(filters, options, async batch => {
    sizes.push(batch.size)
    if (batch.size > most(batch)) throw canceled()
    const lastSeq =
      batch.range.last > 10_000n ? 10_000n : batch.range.last - BigInt(batch.size) + 1n
    return { candidates: batch.size, lastSeq, isDone: false }
  })
  return { sizes, reached }
}

test('a statement timeout during the first batch begins again with smaller ones', async () => {
  const { sizes, reached } = await scan(({ range }) => (range.last === 10_000n ? 20 : 1_000_000))
  expect(sizes.slice(0, 2)).toEqual([256, 16])
  expect(reached).toBeUndefined()
})

test('a statement timeout during a later batch is the end of the page', async () => {
  const { sizes, reached } = await scan(() => 256)
  expect(sizes).toHaveLength(2)
  expect(reached).toBe(9_745n)
})

test('a statement timeout with a single candidate ends the scan before it', async () => {
  expect((await scan(() => 0)).reached).toBe(10_001n)
})

test.each([
  ['one path', ['plan=free'], [16, 64, 256]],
  ['eight paths', ['order.plan.name=free', 'a.b.c=d'], [8, 32, 128]],
  ['many paths', Array.from({ length: 19 }, (_, n) => `a.b.c${n}=free`), [1, 4, 16]],
])('a scan that parses metadata for %s begins with few candidates', async (_, not, first) => {
  const filters = { ...resolved, metadata: { is: [], not } }
  const { sizes, reached } = await scan(() => 1_000_000, filters)
  expect(sizes.slice(0, 3)).toEqual(first)
  expect(reached).toBeUndefined()
})
