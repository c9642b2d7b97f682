import { expect, test } from 'bun:test'
import { toId } from '../../../src/base/ids.ts'
import { createPool, type Pool } from '../../../src/database/pool.ts'
import { noFilters } from '../../../src/log/events/search-filters.ts'
import { createHub, type Hub } from '../../../src/log/feed/hub.ts'
import { startLogTailer } from '../../../src/log/feed/log-tailer.ts'
import { cloneDatabase } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { openSql } from '../../support/sql.ts'

const FOLLOWED = 1_500

test('among many logs the hinted one is sent first, and every log is sent once', async () => {
  const databaseUrl = await cloneDatabase()
  const sql = openSql(databaseUrl)
  const pool = createPool(databaseUrl, { name: 'test tail', max: 1 })
  const projectIds = (
    await sql<{ id: string }[]>`
      with o as (
        insert into organizations (id, name) values (gen_random_uuid(), 'Many') returning id
      ), p as (
        insert into projects (id, organization_id, name)
        select gen_random_uuid(), o.id, 'One of many' from o, generate_series(1, ${FOLLOWED}::int)
        returning id
      ), l as (
        insert into event_logs (project_id, last_seq) select id, 1 from p
      ), c as (
        insert into channels (project_id, id, public_id, slug, name, created_at)
        select id, gen_random_uuid(), 'chn_1', 'payments', 'payments', now() from p
        returning project_id, id
      ), e as (
        insert into events (
          project_id, id, channel_id, seq, occurred_at, created_at, title, tags, metadata, source, notify
        )
        select project_id, gen_random_uuid(), id, 1, now(), now(), 'New payment', '{}', '{}', 'api', true from c
      )
      select id from p order by id
    `
  ).map(({ id }) => id)
  const sent: string[] = []
  const hub = createHub((_, text) => void sent.push(JSON.parse(text).project))
  const socket = { send: () => {}, join: () => {}, leave: () => {}, bufferedBytes: 0 }
  for (const projectId of projectIds) {
    const project = toId('prj', projectId)
    const subscription = {
      socket,
      projectId,
      project,
      filters: noFilters(),
      cursor: 0,
    }
    expect(hub.add(subscription, 0) && hub.goLiveIfNear(subscription)).toBe(true)
  }
  const tail = startLogTailer({
    pool,
    hub,
    isListening: () => true,
    isAllowed: () => true,
  })
  try {
    const hinted = projectIds.at(-1) ?? ''
    tail.wake('all')
    tail.wake([hinted])
    await until(() => sent.length >= FOLLOWED)
    expect(sent.indexOf(toId('prj', hinted))).toBeLessThan(FOLLOWED / 2)
    expect(new Set(sent).size).toBe(FOLLOWED)
    expect(sent).toHaveLength(FOLLOWED)
  } finally {
    await tail.stop()
    await pool.end()
    await sql.end()
  }
})

test('performance §3 the names in filters of one round are bounded, and all projects are read', async () => {
  const users = Array.from({ length: 6_000 }, (_, n) => `"user ${n}"`)
  const toFollowed = (projectId: string, names: string[]) => {
    return { projectId, position: 0, needsVersion: 0, users: names, wantsText: false }
  }
  const all = [...['a', 'b', 'c'].map(id => toFollowed(id, users)), toFollowed('d', [])]
  const hub = {
    listFollowed: (ids?: Set<string>) => all.filter(one => !ids || ids.has(one.projectId)),
  } as unknown as Hub
  const read: string[][] = []
  // The statement has the names first, and then the projects.
  const sql = (_: unknown, ...values: unknown[]) => {
    if (values.length > 1) read.push([...String(values[4]).matchAll(/[a-d]/g)].map(([id]) => id))
    return Promise.resolve([])
  }
  const pool = { run: (work: (own: unknown) => unknown) => work(sql) } as unknown as Pool
  const options = { isListening: () => true, isAllowed: () => true }
  const tail = startLogTailer({ pool, hub, ...options })
  tail.wake('all')
  await until(() => new Set(read.flat()).size === 4)
  await tail.stop()
  expect(read[0]).toContain('d')
  for (const ids of read) expect(ids.filter(id => id !== 'd').length).toBeLessThan(2)
})
