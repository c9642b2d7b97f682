import { expect, test } from 'bun:test'
import { createClient } from '../../clients/typescript/src/client.ts'
import { type Booted, boot, withServer } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { newProject } from '../support/worlds/project.ts'

const server = withServer()

const EVENT = { channelName: 'payments', title: 'New payment' }

/** Makes Postgres fail every write to a table with the error of a full disk. */
async function fill(table: string): Promise<void> {
  await server.sql.unsafe(`
    create or replace function disk_is_full() returns trigger language plpgsql as $$
    begin
      raise exception 'could not extend file: No space left on device' using errcode = 'disk_full';
    end
    $$;
    create trigger disk_is_full before insert on ${table} for each row execute function disk_is_full()
  `)
}

const makeRoom = (table: string) => server.sql.unsafe(`drop trigger disk_is_full on ${table}`)

test('§13 on a full disk POST is a 503, and retries lose and duplicate no event once there is space', async () => {
  const { post, get, key } = await newProject(server)
  expect((await post('/v1/events', EVENT)).body.data.seq).toBe(1)
  await fill('events')
  const refused = await Promise.all(
    Array.from({ length: 5 }, (_, n) => post('/v1/events', EVENT, { 'idempotency-key': `k${n}` })),
  )
  for (const { status, headers, body, text } of refused) {
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('1')
    expect(body).toMatchObject({ success: false, code: 'unavailable' })
    expect(body.error).toBe('The disk of the database is full. Try again shortly.')
    expect(text).not.toContain('No space')
  }
  // Clients print this reason, and not that the server cannot be reached.
  const reason = 'The disk of the database is full. Try again shortly.'
  const client = createClient({ baseUrl: server.url, apiKey: key, retries: 0 })
  await expect(client.events.create(EVENT)).rejects.toThrow(reason)
  // Reads need no disk space and still work.
  expect((await get('/v1/events')).body.data.items).toHaveLength(1)
  await makeRoom('events')
  for (let n = 0; n < 5; n++) {
    const again = await post('/v1/events', EVENT, { 'idempotency-key': `k${n}` })
    expect(again.status).toBe(201)
    expect(again.headers.has('x-idempotent-replay')).toBe(false)
    expect(again.body.data.seq).toBe(n + 2)
  }
  expect((await get('/v1/events')).body.data.items).toHaveLength(6)
})

test.each(['identities', 'idempotency_keys'])(
  '§13 identify on a full disk (%s) is a 503',
  async table => {
    const { post } = await newProject(server)
    await fill(table)
    const refused = await post('/v1/identify', { user_id: 'ada' }, { 'idempotency-key': 'k' })
    expect(refused.status).toBe(503)
    expect(refused.body).toMatchObject({ success: false, code: 'unavailable' })
    await makeRoom(table)
    const again = await post('/v1/identify', { user_id: 'ada' }, { 'idempotency-key': 'k' })
    expect(again.status).toBe(200)
  },
)

test('§13 a database that became read-only is a 503 with this reason, and /readyz says so', async () => {
  await using server = await boot()
  const { post } = await newProject(server)
  const ready = async () => {
    const response = await fetch(`${server.url}/readyz`)
    return { ...((await response.json()) as { reasons?: string[] }), code: response.status }
  }
  expect(await ready()).toMatchObject({ code: 200 })
  await setReadOnly(server, 'on')
  const reason = 'The database is read-only'
  await until(async () => (await ready()).reasons?.includes(reason) ?? false)
  expect(await ready()).toMatchObject({ code: 503, reasons: [reason] })
  const refused = await post('/v1/events', EVENT)
  expect(refused.status).toBe(503)
  expect(refused.body.error).toBe('The database is read-only. Try again shortly.')
  await setReadOnly(server, 'off')
  await until(async () => (await ready()).code === 200)
  expect((await post('/v1/events', EVENT)).status).toBe(201)
})

/** Changes the default of new transactions, and ends the sessions of the server. */
async function setReadOnly({ sql }: Booted, value: 'on' | 'off'): Promise<void> {
  await sql.unsafe('set default_transaction_read_only = off')
  const [row] = await sql<[{ name: string }]>`select current_database() as name`
  await sql.unsafe(`alter database ${row.name} set default_transaction_read_only = ${value}`)
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
  `
}
