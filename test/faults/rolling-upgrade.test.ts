import { expect, setDefaultTimeout, test } from 'bun:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { listCodeBlocks } from '../support/docs.ts'
import { openFeed } from '../support/clients/feed.ts'
import { createHttpClient } from '../support/clients/http-client.ts'
import { findFreePort } from '../support/loopback.ts'
import { startNginx } from '../support/servers/nginx.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { startProgram, type Program } from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { hasTool } from '../support/tools.ts'
import { checkLedger } from './ledger-check.ts'
import { startLoad } from './ledger.ts'
import { createRandom, newSeed } from './random.ts'
import { scaled } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

setDefaultTimeout(scaled(120_000))

const NEXT_VERSION = join(import.meta.dirname, '../support/next-version.ts')
const DOCUMENTED = ['10.0.0.1:3000', '10.0.0.2:3000', '10.0.0.3:3000']

test.skipIf(!hasTool('nginx'))(
  'a rolling upgrade of three servers behind the nginx of the documentation shows clients no error',
  async () => {
    const databaseUrl = await cloneDatabase()
    const sql = openSql(databaseUrl, { max: 2 })
    const port = await findFreePort()
    const url = `http://127.0.0.1:${port}`
    const ports = [await findFreePort(), await findFreePort(), await findFreePort()]
    const start = (nth: number, program?: string) =>
      startProgram({
        // One server drains for a second, and the others stop at once.
        env: {
          DATABASE_URL: databaseUrl,
          PORT: String(ports[nth]),
          BASE_URL: url,
          TRUSTED_PROXIES: '127.0.0.1',
          DRAIN_SECONDS: nth === 0 ? '1' : '0',
        },
        ...(program !== undefined && { program }),
      })
    const programs = await Promise.all(ports.map((_, nth) => start(nth)))
    const block = listCodeBlocks('docs/scaling.md').find(({ language }) => language === 'nginx')
    const addresses = Object.fromEntries(
      DOCUMENTED.map((address, nth) => [address, `127.0.0.1:${ports[nth]}`]),
    )
    await using _nginx = await startNginx(block?.text ?? '', { port, addresses })
    await using _programs = { [Symbol.asyncDispose]: () => killAll(programs) }

    const random = createRandom(newSeed())
    const projects = [await newProject({ sql, url: '' }, { limit: 1_000_000_000 })]
    const organization = await newOrganization({ sql })
    const member = await newMember({ sql, url }, organization, 'viewer')
    // No two clients share an Idempotency-Key: the second one could get a rightful 409.
    const servers = () => [url]
    const load = startLoad({ clients: 16, random, projects, servers, shared: 0 })
    const stopping = new AbortController()
    const watching = Promise.all([
      readAgain(url, projects[0]!.key, stopping.signal),
      reopenAgain(() => openFeed(url, member), stopping.signal),
      watchReady(programs, stopping.signal),
    ])
    for (const nth of ports.keys()) {
      await load.successes(200)
      const old = programs[nth]!
      expect(await old.kill('SIGTERM')).toEqual({ code: 0, signal: null })
      programs[nth] = await start(nth, NEXT_VERSION)
    }
    expect(programs[0]!.logged('Applied migration')).toHaveLength(1)
    expect(programs.map(({ logged }) => logged('Replaced the functions').length)).toEqual([1, 0, 0])
    // A server of the version before that starts again, beside newer ones.
    await programs[2]!.kill('SIGTERM')
    programs[2] = await start(2)
    await load.successes(200)
    expect(programs[2]!.logged('Replaced the functions')).toEqual([])
    expect([...(await sql`select version, later() as later from function_sets`)]).toEqual([
      { version: '900.0.0', later: 1 },
    ])
    await load.stop()
    stopping.abort()
    const [reads, closes, notReady] = await watching

    const { problems } = await checkLedger(sql, [projects[0]!.id], load.ledger)
    expect(problems).toEqual([])
    expect([...load.ledger.outcomes.keys()]).toEqual(['201'])
    expect([...reads]).toEqual([200])
    expect(closes.filter(code => code !== 1001 && code !== 1012)).toEqual([])
    expect(notReady).toEqual([])
    await sql.end()
  },
)

/** Reads until the signal. Returns the statuses. */
async function readAgain(url: string, key: string, signal: AbortSignal): Promise<Set<number>> {
  const client = createHttpClient(url)
  const statuses = new Set<number>()
  while (!signal.aborted) {
    const headers = { authorization: `Bearer ${key}` }
    statuses.add((await client.request('GET', '/v1/events?limit=1', { headers })).status)
  }
  client.close()
  return statuses
}

/** Opens a socket whenever the last one has closed. Returns the close codes. */
async function reopenAgain(
  open: () => ReturnType<typeof openFeed>,
  signal: AbortSignal,
): Promise<number[]> {
  const codes: number[] = []
  const aborted = new Promise<undefined>(resolve => {
    signal.addEventListener('abort', () => resolve(undefined))
  })
  while (!signal.aborted) {
    const feed = await open()
    const closed = await Promise.race([feed.closed, aborted])
    if (closed) codes.push(closed.code)
    else feed.close()
  }
  return codes
}

/** Returns the responses of running servers that were not ready, unless they were stopping. */
async function watchReady(programs: readonly Program[], signal: AbortSignal): Promise<string[]> {
  const problems: string[] = []
  while (!signal.aborted) {
    await sleep(50)
    for (const { url } of programs) {
      const response = await fetch(`${url}/readyz`).catch(() => undefined)
      const text = response?.status === 503 ? await response.text() : ''
      if (text !== '' && !text.includes('The server is stopping')) problems.push(text)
    }
  }
  return problems
}

async function killAll(programs: readonly Program[]): Promise<void> {
  await Promise.all(programs.map(program => program.kill()))
}
