import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Sql } from '../../src/database/sql.ts'
import { openFeed } from '../support/clients/feed.ts'
import { toRequest } from '../support/clients/raw-http.ts'
import { openStalled } from '../support/clients/raw-feed.ts'
import { makeFolder } from '../support/scratch.ts'
import { findPid, isNamed, isRoot } from '../support/servers/embedded.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import {
  compileBinary,
  findDeno,
  runProgram,
  startProgram,
  type Runtime,
} from '../support/servers/process.ts'
import { openSql } from '../support/sql.ts'
import { scaled, until } from '../support/until.ts'
import { runBlackBox } from '../support/worlds/black-box.ts'
import { createBrowser, WRONG_PASSWORD } from '../support/worlds/browser.ts'
import { newFeedProject } from '../support/worlds/feed-project.ts'
import { createRequests } from '../support/worlds/project.ts'

const EGRESS = join(import.meta.dir, '../support/egress-program.ts')

let databaseUrl: string
let sql: Sql
// Deno checks and compiles the sources at each start.
setDefaultTimeout(scaled(180_000))
beforeAll(async () => {
  await compileBinary()
  databaseUrl = await cloneDatabase()
  sql = openSql(databaseUrl, { max: 2 })
}, scaled(300_000))
afterAll(() => sql.end({ timeout: 1 }))

/** Returns the head of a 400 as it was sent. Clients make the names lower-case. */
async function readHead(url: string, key: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = ['Host: localhost', `Authorization: Bearer ${key}`, 'Content-Length: 0']
  socket.write(toRequest('POST /v1/events HTTP/1.1', lines))
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  const head = String(chunk)
  expect(head).toStartWith('HTTP/1.1 400')
  return head
}

// The executable runs in an empty folder, without an environment, and not as root.
test.if(isNamed).each<Runtime>(['deno', 'binary'])(
  'on %s the whole story works on its own database, from the setup link to the stop',
  async runtime => {
    const folder = makeFolder(0o755)
    const uid = isRoot ? 65_534 : process.getuid?.()
    if (runtime === 'binary' && isRoot) chownSync(folder, 65_534, 65_534)
    const isBare = runtime === 'binary' && uid !== undefined
    const options = { runtime, ...(isBare && { bare: { cwd: folder, uid } }) }
    await runBlackBox(folder, options, async ({ url, port }) => {
      const browser = createBrowser(url)
      expect((await browser.signIn('ada@example.com', WRONG_PASSWORD)).status).toBe(401)
      expect((await browser.signIn('ada@example.com')).status).toBe(200)
      const sessions = await browser.get('/api/sessions')
      expect(sessions.body.data.items[0].address).toBe('127.0.0.1')
      const run = (args: string[], env: Record<string, string>) =>
        runProgram({ runtime, args, env })
      const DATA_DIR = join(folder, 'data')
      const made = await run(['keys', 'create', '--name', 'story', '--json'], { DATA_DIR })
      expect(made.code).toBe(0)
      const { key } = JSON.parse(made.output) as { key: string }
      expect(await readHead(url, key)).toContain('\r\nX-RateLimit-Limit: 100\r\n')

      const { post, get, request } = createRequests(url, key)
      const event = { channelName: 'Ops', title: 'Keyed', userId: 'ada@example.com' }
      const send = () => post('/v1/events', event, { 'idempotency-key': 'story-1' })
      // On a busy machine, a 503 asks to try again with the same key.
      await until(async () => (await send()).status === 201)
      const replayed = await send()
      expect(replayed.headers.get('x-idempotent-replay')).toBe('true')
      const listed = await get('/v1/events?userId=ada&channel=ops')
      expect(listed.body.data.items).toEqual([{ ...replayed.body.data, userId: 'ada' }])
      const json = { title: 5, metadata: [] }
      const broken = await request('/v1/events', { method: 'POST', json })
      expect(broken.status).toBe(400)
      const paths = broken.body.details.map(({ path }: { path: string[] }) => path)
      expect(paths).toEqual([['channelName'], ['title'], ['metadata']])
      expect((await request('/v1/events', { method: 'PUT' })).status).toBe(405)
      for (const path of ['/docs', '/docs/sending-events', '/docs/api', '/docs/search.json'])
        expect((await fetch(url + path)).status).toBe(200)
      expect((await fetch(`${url}/openapi.json`)).status).toBe(200)

      const params = { name: 'send', arguments: { channelName: 'ops', title: 'By an agent' } }
      const called = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      })
      expect(await called.text()).toContain('\\"title\\":\\"By an agent\\"')

      const cli = { TIDINGS_URL: url, TIDINGS_API_KEY: key }
      const sent = await run(['send', 'Backup failed', '--channel', 'ops', '--json'], cli)
      expect(JSON.parse(sent.output)).toMatchObject({ title: 'Backup failed', source: 'cli' })
      // On a busy machine the database may answer late once.
      await until(async () => {
        const { code, output } = await run(['health'], { PORT: String(port) })
        return code === 0 && output.startsWith('{"status":"ready"')
      })
    })
    expect(findPid(join(folder, 'data'))).toBeUndefined()
  },
)

// The executable has the sockets of Bun.
test.each<Runtime>(['bun', 'deno'])(
  'case 21: on %s a client that does not read is closed and costs nobody an event, and a replay waits for a slow one',
  async runtime => {
    await using program = await startProgram({ runtime, env: { DATABASE_URL: databaseUrl } })
    const watched = await newFeedProject({ sql, url: program.url })
    const { project, member, postEvent } = watched
    const foreign = { headers: { origin: 'http://evil.example' } }
    await expect(openFeed(program.url, member, foreign)).rejects.toThrow()
    const reader = await openFeed(program.url, member)
    await reader.subscribe(project)
    const some = await openFeed(program.url, member)
    await some.subscribe(project, { filters: { tags: ['some'] } })
    const openSlow = (after: number | null) =>
      openStalled(program.url, {
        cookie: member.cookie,
        message: { type: 'subscribe', project, after },
      })
    const stalled = await openSlow(null)
    await postEvent('all are there', { tags: ['some'] })
    expect(await reader.seqs(1)).toEqual([1])
    expect(await some.seqs(1)).toEqual([1])

    // 18 MB: more than the kernels of both ends hold, and ten times the limit of the server.
    const metadata = { filler: 'x'.repeat(60_000) }
    for (let nth = 0; nth < 30; nth++) {
      await Promise.all(Array.from({ length: 10 }, () => postEvent('long', { metadata })))
    }
    const seqs = Array.from({ length: 301 }, (_, nth) => nth + 1)
    expect(await reader.seqs(300)).toEqual(seqs.slice(1))
    expect(reader.all).toHaveLength(303)
    // Events are 60 KB each: the kernels hold some, and the server kept no more than its limit.
    expect((await stalled.read()).length).toBeLessThan(200)
    // Bun breaks the connection, and Deno says why.
    expect(stalled.closeCode()).toBe(runtime === 'deno' ? 1013 : 1006)
    stalled.destroy()
    // The socket no longer counts for the account, which may have 20.
    await until(async () => {
      const open = await Promise.all(
        Array.from({ length: 18 }, () => openFeed(program.url, member, { isBare: true })),
      )
      const types = await Promise.all(
        open.map(client => Promise.race([client.next(), client.closed])),
      )
      for (const client of open) client.close()
      await Promise.all(open.map(client => client.closed))
      return types.every(({ type }) => type === 'hello')
    })

    const slow = await openSlow(0)
    const other = await openFeed(program.url, member)
    await other.subscribe(project, { after: 300 })
    expect(await other.seqs(1)).toEqual([301])
    const texts = await slow.read(read => read.at(-1)?.includes('"seq":301,') ?? false)
    const events = texts.map(text => JSON.parse(text)).filter(({ type }) => type === 'event')
    expect(events.map(({ seq }) => seq)).toEqual(seqs)
    slow.destroy()

    some.send('x'.repeat(5_000))
    expect((await some.closed).code).toBe(1009)
    other.send(new TextEncoder().encode('{}'))
    expect((await other.closed).code).toBe(1003)
    const stays = await newFeedProject({ sql, url: program.url })
    const last = await openFeed(program.url, stays.member)
    await sql`delete from sessions where id = ${member.sessionId}`
    expect((await reader.closed).code).toBe(1008)
    program.signal('SIGTERM')
    expect((await last.closed).code).toBe(1001)
    expect((await program.exited).code).toBe(0)
  },
)

const COMMANDS = [
  ['bun', process.execPath, []],
  ['deno', findDeno(), ['run', '-A', '--no-check']],
] as const

test.concurrent.each(COMMANDS)(
  'the guarded client on %s: each fault has its outcome in time, on new and on kept connections',
  async (_, command, before) => {
    const child = spawn(command, [...before, EGRESS], { stdio: ['ignore', 'pipe', 'inherit'] })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(0)
    const expected: Record<string, string> = {
      hang: 'timeout',
      'slow headers': 'timeout',
      drip: '200 true',
      'drip 500': '500 true',
      reset: 'reset',
      cut: '200 true',
      bomb: '200 true',
      flood: '200 true',
      'endless headers': 'protocol',
      'endless hints': 'protocol',
      garbage: 'protocol',
    }
    const all = ['http', 'https'].flatMap(protocol =>
      Object.entries(expected).map(([fault, came]) => [
        `${protocol} ${fault}`,
        [came, '200 true', came],
      ]),
    )
    expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual(Object.fromEntries(all))
  },
)

test('reliability §6 a password hashed on one runtime is accepted on the other', () => {
  const script = join(import.meta.dir, '../support/hash-password.ts')
  const hash = (command: string, before: string[], hashes: string[]) => {
    const { stdout } = spawnSync(command, [...before, script, 'crème brûlée', ...hashes])
    return JSON.parse(String(stdout)) as { hash: string; verified: boolean[] }
  }
  const deno: [string, string[]] = [findDeno(), ['run', '-A', '--no-check']]
  const onBun = hash(process.execPath, [], ['garbage', '', '$argon2id$v=19$m=19456,t=2,p=1$AA$BB'])
  expect(onBun.verified).toEqual([false, false, false])
  const onDeno = hash(...deno, [onBun.hash, 'garbage', '$argon2id$x'])
  expect(onDeno.verified).toEqual([true, false, false])
  const again = hash(process.execPath, [], [onDeno.hash, `${onDeno.hash}x`])
  expect(again.verified).toEqual([true, false])
  for (const { hash } of [onBun, onDeno])
    expect(hash).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
})
