import { expect, test } from 'bun:test'
import { sqlState } from '../../../src/database/sql.ts'
import { buildHistogram } from '../../../src/log/events/histogram.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'
import { withServer } from '../../support/servers/server.ts'
import { expectExactCounts, listHourlyCounts } from '../../support/counts.ts'
import { openSql } from '../../support/sql.ts'

const HOUR_MS = 3_600_000
const NOON_MS = Date.parse('2026-03-10T12:00:00Z')

const server = withServer()

test('hourly counts stay exact during concurrent appends, deletions and restores', async () => {
  const project = await newProject(server)
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; n < 25; n++) {
      const timestamp = new Date(NOON_MS - ((writer * 7 + n * 13) % 30) * 20 * 60_000).toISOString()
      const { body } = await project.post('/v1/events', {
        channelName: `channel ${(writer + n) % 3}`,
        title: 't',
        ...(n % 4 && { timestamp }),
      })
      const seqs = `{${body.data.seq},${Math.max(1, body.data.seq - 3)}}`
      const { sql } = server
      const deleteEvents = (seqs: string) =>
        // It gives up while other writers hold the log for long.
        sql`select delete_free_events(${project.id}, ${seqs}::bigint[], null)`.catch(
          (error: unknown) => expect(sqlState(error)).toBe('55P03'),
        )
      if (n % 5 === 1) await sql`select hide_events(${project.id}, ${seqs}::bigint[])`
      if (n % 5 === 2) await sql`select restore_events(${project.id}, ${seqs}::bigint[])`
      if (n % 5 === 3) await deleteEvents(seqs)
    }
  })
  await Promise.all(writers)
  await expectExact(project)
  const [left] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from events where project_id = ${project.id}
  `
  expect(left.n).toBeLessThan(200)
})

test('deletion returns the events that existed, and a second deletion changes nothing', async () => {
  const project = await newProject(server)
  for (let n = 0; n < 4; n++) await project.post('/v1/events', { channelName: 'c', title: 't' })
  const run = async (name: string, ...seqs: number[]) => {
    const rows = await server.sql<{ seq: string }[]>`
      select seq from ${server.sql(name)}(${project.id}, ${`{${seqs.join()}}`}::bigint[]) as f (seq)
    `
    await expectExact(project)
    return rows.map(({ seq }) => Number(seq))
  }
  expect(await run('hide_events', 3, 1, 9)).toEqual([1, 3])
  expect(await run('hide_events', 1, 2)).toEqual([2])
  expect(await run('restore_events', 1, 4, 2)).toEqual([1, 2])
  expect(await run('restore_events', 1)).toEqual([])
  const remove = async (...seqs: number[]) => {
    const [{ n }] = await server.sql<[{ n: number }]>`
      select cardinality(delete_free_events(${project.id}, ${`{${seqs.join()}}`}::bigint[], null)) as n
    `
    await expectExact(project)
    return n
  }
  expect(await remove(3, 4, 9)).toBe(2)
  expect(await remove(3)).toBe(0)
  expect(await run('hide_events', 1, 2)).toEqual([1, 2])
  const [counts] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from event_counts where project_id = ${project.id}
  `
  expect(counts.n).toBe(0)
})

test('hours are in UTC, regardless of the time zone of the session or timestamp', async () => {
  const project = await newProject(server)
  const odd = openSql(server.databaseUrl, { settings: { TimeZone: 'Asia/Kathmandu' } })
  for (const timestamp of [
    '2026-03-10T11:59:59.999Z',
    '2026-03-10T17:45:00+05:45',
    '2026-03-10T12:59:59Z',
  ]) {
    await project.post('/v1/events', { channelName: 'c', title: 't', timestamp })
  }
  await odd`select hide_events(${project.id}, '{3}')`
  await odd`select restore_events(${project.id}, '{3}')`
  await expectExact(project)
  const range = { fromMs: NOON_MS - HOUR_MS, toMs: NOON_MS + HOUR_MS, nowMs: NOON_MS }
  for (const sql of [server.sql, odd]) {
    const { from, channels } = await listHourlyCounts(sql, project.id, range)
    expect([from, channels[0]?.hourly]).toEqual(['2026-03-10T11:00:00.000Z', [1, 2]])
    const histogram = await buildHistogram(sql, project.id, noFilters(), range)
    expect([histogram.stepMs, histogram.others.length, histogram.total]).toEqual([120_000, 60, 3])
    expect(histogram.channels[0]?.counts[29]).toBe(1)
    expect(histogram.channels[0]?.counts[30]).toBe(1)
    expect(histogram.channels[0]?.counts[59]).toBe(1)
  }
  await odd.end()
})

test('a histogram shows the channels with the most events, and the others as a sum', async () => {
  const project = await newProject(server)
  for (let channel = 0; channel < 12; channel++) {
    for (let n = 0; n <= channel; n++) {
      const timestamp = new Date(NOON_MS).toISOString()
      await project.post('/v1/events', { channelName: `channel ${channel}`, title: 't', timestamp })
    }
  }
  const histogram = await buildHistogram(server.sql, project.id, noFilters(), { nowMs: NOON_MS })
  expect(histogram.to).toBe('2026-03-10T12:00:00.000Z')
  expect(histogram.total).toBe(0)
  const later = await buildHistogram(server.sql, project.id, noFilters(), { nowMs: NOON_MS + 1 })
  expect([later.stepMs, later.others.length, later.total]).toEqual([HOUR_MS, 60, 78])
  expect(later.channels.map(({ name, counts }) => [name, counts.at(-1)])).toEqual(
    [11, 10, 9, 8, 7, 6, 5, 4].map(n => [`channel ${n}`, n + 1]),
  )
  expect(later.others.at(-1)).toBe(1 + 2 + 3 + 4)
})

test('a histogram whose range is empty or in the future has no events', async () => {
  const project = await newProject(server)
  await project.post('/v1/events', { channelName: 'c', title: 't' })
  const far = Date.parse('9999-12-31T23:59:59.999Z')
  for (const [fromMs, toMs] of [
    [far, far],
    [far, 0],
    [Date.now() + 2 * HOUR_MS, far],
  ]) {
    const range = { fromMs, toMs, nowMs: Date.now() }
    expect((await buildHistogram(server.sql, project.id, noFilters(), range)).total).toBe(0)
  }
  const always = { fromMs: Date.parse('0100-01-01T00:00:00Z'), toMs: far, nowMs: Date.now() }
  expect((await buildHistogram(server.sql, project.id, noFilters(), always)).total).toBe(1)
})

/**
 * Expects the hourly counts of a project to equal its live events, and its ranges to contain them.
 */
async function expectExact({ id }: TestProject): Promise<void> {
  await expectExactCounts(server.sql, id)
  const [outside] = await server.sql<[{ n: number }]>`
    select count(*)::int as n
    from events e
      left join event_segments s on s.project_id = e.project_id and s.segment = e.seq >> 12
        and e.occurred_at >= s.first_at and e.occurred_at < s.last_at
    where e.project_id = ${id} and s.segment is null
  `
  expect(outside.n).toBe(0)
}
