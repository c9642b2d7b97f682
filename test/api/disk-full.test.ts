import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newProject } from '../support/project.ts'
import { boot, type Booted } from '../support/server.ts'

let server: Booted
beforeAll(async () => {
  server = await boot()
})
afterAll(() => server[Symbol.asyncDispose]())

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
  const { post, get } = await newProject(server)
  expect((await post('/v1/events', EVENT)).body.data.seq).toBe(1)
  await fill('events')
  const refused = await Promise.all(
    Array.from({ length: 5 }, (_, n) => post('/v1/events', EVENT, { 'idempotency-key': `k${n}` })),
  )
  for (const { status, headers, body, text } of refused) {
    expect(status).toBe(503)
    expect(headers.get('retry-after')).toBe('1')
    expect(body).toMatchObject({ success: false, code: 'unavailable' })
    expect(text).not.toContain('No space')
  }
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
