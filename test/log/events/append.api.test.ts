import { expect, test } from 'bun:test'
import { appendRows, number } from '../../../src/log/events/append-statement.ts'
import { toNewEvent } from '../../../src/log/events/new-event.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { openSql } from '../../support/sql.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()

/** Sends events of one thread in a new project. Returns what each says, and how it is told. */
async function sendAll(...events: object[]) {
  const { projectId, send, v1 } = await newTenant(server)
  const sent = []
  for (const event of events) {
    const data = await send({ thread: 'disk db1', ...event })
    const { body } = await v1.get(`/v1/events/${data.id}`)
    expect(body.data).toEqual(data)
    sent.push(data)
  }
  const rows = await server.sql<{ telling: number | null }[]>`
    select telling from events where project_id = ${projectId} order by seq
  `
  return sent.map(({ threadSeq, state, level }, n) => [threadSeq, state, level, rows[n]?.telling])
}

test('contract §2 an event updates the open thread of its key, and opens one after its end', async () => {
  expect(
    await sendAll(
      { state: 'firing', level: 'high' },
      {},
      { state: 'resolved' },
      { state: 'resolved' },
      {},
      { thread: 'disk db2' },
      { channelName: 'billing' },
      { state: 'succeeded' },
      { state: 'failed' },
      { state: 'running' },
    ),
  ).toEqual([
    [1, 'firing', 'high', null],
    [1, 'firing', 'high', 1],
    [1, 'resolved', 'high', 1],
    [1, 'resolved', 'high', 2],
    [5, undefined, undefined, null],
    [6, undefined, undefined, null],
    [7, undefined, undefined, null],
    [5, 'succeeded', undefined, 1],
    [9, 'failed', undefined, null],
    [10, 'running', undefined, null],
  ])
})

test('contract §2 an update is told aloud if the state or the level became worse', async () => {
  expect(
    await sendAll(
      { state: 'running', level: 'high' },
      { level: 'critical' },
      { level: 'low' },
      { state: 'firing' },
      { level: 'normal' },
      { state: 'failed' },
    ),
  ).toEqual([
    [1, 'running', 'high', null],
    [1, 'running', 'critical', null],
    [1, 'running', 'low', 1],
    [1, 'firing', 'low', null],
    [1, 'firing', undefined, null],
    [1, 'failed', undefined, 1],
  ])
  expect(await sendAll({ state: 'resolved' }, { state: 'firing' })).toEqual([
    [1, 'resolved', undefined, 2],
    [2, 'firing', undefined, null],
  ])
})

test('§6 no event is stored in a channel of another project', async () => {
  const [one, other] = [await newTenant(server), await newTenant(server)]
  const { channelId } = await other.send()
  const [{ id: uuid }] = await server.sql<[{ id: string }]>`
    select id from channels where project_id = ${other.projectId}
  `
  for (const count of [1, 2]) {
    const jobs = Array.from({ length: count }, () => ({
      ...{ projectId: one.projectId, requestId: '', claim: undefined, admission: undefined },
      event: toNewEvent({ channelName: 'ops', title: 'Disk full' }),
    }))
    const appended = appendRows(server.sql, {
      ...{ jobs, channels: jobs.map(() => ({ uuid, id: channelId, name: 'ops' })) },
      ...{ projects: number(jobs.map(job => job.projectId)), keys: number([]) },
    })
    await expect(appended).rejects.toThrow('event_counts_project_id_channel_id_fkey')
  }
})

test('events without a thread take the statements that they took before there were threads', async () => {
  const { projectId, send } = await newTenant(server)
  const { channelId } = await send()
  const [{ id: uuid }] = await server.sql<[{ id: string }]>`
    select id from channels where project_id = ${projectId}
  `
  await using sql = openSql(server.databaseUrl, { max: 1 })
  const channel = { uuid, id: channelId, name: 'ops' }
  const append = (...inputs: object[]) => {
    const jobs = inputs.map(input => ({
      ...{ projectId, requestId: '', claim: undefined, admission: undefined },
      event: toNewEvent({ channelName: 'ops', title: 'Disk full', ...input }),
    }))
    const projects = number(jobs.map(() => projectId))
    return appendRows(sql, {
      ...{ jobs, channels: jobs.map(() => channel), projects, keys: number([]) },
    })
  }
  const read = async () => {
    const rows = await sql<{ called: string; arguments: number; threads: boolean }[]>`
      select
        substring(statement from 'append_[a-z]+') as called, cardinality(parameter_types) as arguments,
        statement ~ 'threads' as threads
      from pg_prepared_statements
      where statement ~ 'from append_[a-z]+[(]'
      order by prepare_time
    `
    return [...rows]
  }
  await append({ level: 'high' })
  await append({}, {})
  await append({ level: 'high' }, {})
  await append({ thread: 'disk db1' })
  expect(await read()).toEqual([
    { called: 'append_single', arguments: 15, threads: false },
    { called: 'append_batch', arguments: 23, threads: false },
    { called: 'append_batch', arguments: 25, threads: false },
    { called: 'append_batch', arguments: 25, threads: true },
  ])
})
