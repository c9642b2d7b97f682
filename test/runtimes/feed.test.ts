import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Sql } from '../../src/database/sql.ts'
import { openFeed } from '../support/clients/feed.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram, type Runtime } from '../support/servers/process.ts'
import { openStalled } from '../support/clients/raw-feed.ts'
import { scaled, until } from '../support/until.ts'
import { newFeedProject } from '../support/worlds/feed-project.ts'
import { openSql } from '../support/sql.ts'

let databaseUrl: string
let sql: Sql
// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(async () => {
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl, { max: 2 })
})
afterAll(async () => {
  await sql.end({ timeout: 1 })
})

// The executable has the sockets of Bun.
describe.each<Runtime>(['bun', 'deno'])('the feed on %s', runtime => {
  test('a socket is refused, gets replayed, live and filtered events, and is closed for each reason', async () => {
    await using program = await startProgram({ runtime, env: { DATABASE_URL: databaseUrl } })
    const watched = await newFeedProject({ sql, url: program.url })
    await watched.postEvents(300)
    await expect(
      openFeed(program.url, watched.member, { headers: { origin: 'http://evil.example' } }),
    ).rejects.toThrow()

    const all = await openFeed(program.url, watched.member)
    expect((await all.subscribe(watched.project, { after: 0 })).head).toBe(300)
    const some = await openFeed(program.url, watched.member)
    await some.subscribe(watched.project, { filters: { tags: ['some'] } })
    expect(await all.seqs(300)).toEqual(Array.from({ length: 300 }, (_, nth) => nth + 1))
    await watched.postEvent('not for all')
    await watched.postEvent('for all', { tags: ['some'] })
    expect(await all.seqs(2)).toEqual([301, 302])
    expect(await some.seqs(1)).toEqual([302])

    some.send('x'.repeat(5_000))
    expect((await some.closed).code).toBe(1009)
    const binary = await openFeed(program.url, watched.member)
    binary.send(new TextEncoder().encode('{}'))
    expect((await binary.closed).code).toBe(1003)
    const stays = await newFeedProject({ sql, url: program.url })
    const last = await openFeed(program.url, stays.member)
    await sql`delete from sessions where id = ${watched.member.sessionId}`
    expect((await all.closed).code).toBe(1008)
    program.signal('SIGTERM')
    expect((await last.closed).code).toBe(1001)
    expect((await program.exited).code).toBe(0)
  })

  test('case 21: a client that does not read is closed, and costs no other client an event', async () => {
    await using program = await startProgram({ runtime, env: { DATABASE_URL: databaseUrl } })
    const watched = await newFeedProject({ sql, url: program.url })
    const reader = await openFeed(program.url, watched.member)
    await reader.subscribe(watched.project)
    const message = { type: 'subscribe', project: watched.project }
    const stalled = await openStalled(program.url, { cookie: watched.member.cookie, message })
    await watched.postEvent('both are there')
    expect(await reader.seqs(1)).toEqual([1])

    // 18 MB: more than the kernels of both ends hold, and ten times the limit of the server.
    const metadata = { filler: 'x'.repeat(60_000) }
    for (let nth = 0; nth < 30; nth++) {
      await Promise.all(Array.from({ length: 10 }, () => watched.postEvent('long', { metadata })))
    }
    expect(await reader.seqs(300)).toEqual(Array.from({ length: 300 }, (_, nth) => nth + 2))
    expect(reader.all).toHaveLength(303)
    // Events are 60 KB each: the kernels hold some, and the server kept no more than its limit.
    expect((await stalled.read()).length).toBeLessThan(200)
    // Bun breaks the connection, and Deno says why.
    expect(stalled.closeCode()).toBe(runtime === 'deno' ? 1013 : 1006)
    stalled.destroy()
    // The socket no longer counts for the account.
    await until(async () => {
      const open = await Promise.all(
        Array.from({ length: 19 }, () => openFeed(program.url, watched.member, { isBare: true })),
      )
      const types = await Promise.all(
        open.map(client => Promise.race([client.next(), client.closed])),
      )
      for (const client of open) client.close()
      await Promise.all(open.map(client => client.closed))
      return types.every(({ type }) => type === 'hello')
    })
    reader.close()
  })

  test('case 21: a replay waits for a slow reader', async () => {
    await using program = await startProgram({ runtime, env: { DATABASE_URL: databaseUrl } })
    const watched = await newFeedProject({ sql, url: program.url })
    const metadata = { filler: 'x'.repeat(60_000) }
    for (let nth = 0; nth < 30; nth++) {
      await Promise.all(Array.from({ length: 10 }, () => watched.postEvent('long', { metadata })))
    }
    const message = { type: 'subscribe', project: watched.project, after: 0 }
    const stalled = await openStalled(program.url, { cookie: watched.member.cookie, message })
    const other = await openFeed(program.url, watched.member)
    await other.subscribe(watched.project, { after: 299 })
    expect(await other.seqs(1)).toEqual([300])
    const texts = await stalled.read(read => read.at(-1)?.includes('"seq":300,') ?? false)
    const messages = texts.map(text => JSON.parse(text)).filter(({ type }) => type === 'event')
    expect(messages.map(({ seq }) => seq)).toEqual(Array.from({ length: 300 }, (_, nth) => nth + 1))
    stalled.destroy()
    other.close()
  })
})
