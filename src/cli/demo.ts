import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type Client } from '../../clients/typescript/src/client.ts'
import { parseConfig, type Config } from '../base/config.ts'
import { pause } from '../base/functions.ts'
import { configureLog } from '../base/log.ts'
import { findInaccessibleFolder } from '../database/embedded/folders.ts'
import { listShopEvents } from '../log/demo/shop.ts'
import { HOUR_MS } from '../log/events/time-buckets.ts'
import { IncompleteStop } from '../server/cleanup-stack.ts'
import { command, UsageError } from './command.ts'
import { waitForStopSignal } from './stop-signal.ts'

const EMAIL = 'ada@example.com'
const MAX_SPEED = 10_000
/** The played day begins when the shop is busy. */
const FIRST_HOUR = 12

export const demo = command({
  name: 'demo',
  description:
    'Start a server that plays the day of an invented shop. It keeps nothing: its data is deleted when it stops. It touches no other installation.',
  examples: ['tidings demo', 'tidings demo --port 8080 --speed 300'],
  args: {
    port: {
      type: 'string',
      description: 'Port to listen on, on this machine only. Default: PORT, or 3000',
    },
    speed: {
      type: 'string',
      default: '100',
      description: 'How many times as fast as real time the day passes',
    },
  },
  async run({ port = process.env['PORT'] ?? '3000', speed: typedSpeed }) {
    const speed = Number(typedSpeed)
    if (!(speed >= 1 && speed <= MAX_SPEED)) {
      throw new UsageError(`--speed must be a number from 1 to ${MAX_SPEED}. It is ${typedSpeed}.`)
    }
    // `fetch` would send them its requests to the demo.
    for (const name of ['HTTP_PROXY', 'http_proxy']) delete process.env[name]
    const stopping = new AbortController()
    const stopped = waitForStopSignal().then(() => stopping.abort())
    const password = randomBytes(9).toString('base64url')
    // When root starts the demo, Postgres runs as another user, who must be able to enter.
    const parent = findInaccessibleFolder(tmpdir()) === undefined ? tmpdir() : '/tmp'
    const dataDir = mkdtempSync(join(parent, 'tidings-demo-'))
    chmodSync(dataDir, 0o711)
    let isClean = false
    try {
      // Not the environment's settings, which can name a real installation.
      const config = parseConfig(
        {
          DATA_DIR: dataDir,
          HOST: '127.0.0.1',
          PORT: port,
          LOG_LEVEL: 'warning',
          OWNER_EMAIL: EMAIL,
          OWNER_PASSWORD: password,
        },
        () => '',
      )
      configureLog(config.logLevel, process.stderr)
      const { signal } = stopping
      isClean = await serveUntilStopped(config, { password, speed, stopped, signal })
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
    process.exit(isClean ? 0 : 1)
  },
})

/** Plays the day until a signal stops it. Resolves to false if the stop is incomplete. */
async function serveUntilStopped(
  config: Config,
  {
    password,
    speed,
    stopped,
    signal,
  }: { password: string; speed: number; stopped: Promise<void>; signal: AbortSignal },
): Promise<boolean> {
  const { startServer } = await import('../server/server.ts')
  const server = await startServer(config, { signal }).catch((error: unknown) => {
    if (!signal.aborted || error instanceof IncompleteStop) throw error
  })
  if (!server) return true
  try {
    const { client, feed } = await openSample(server.url, password)
    process.stderr.write(toBanner(feed, password))
    await Promise.race([stopped, play(client, speed, signal)])
  } catch (error) {
    await server.stop()
    throw error
  }
  return server.stop()
}

/** Creates the project with sample data. Returns a client with a key of it, and its feed's URL. */
async function openSample(
  url: string,
  password: string,
): Promise<{ client: Client; feed: string }> {
  let cookie = ''
  async function request<Data>(method: string, path: string, body?: object): Promise<Data> {
    const response = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', origin: url, cookie },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok)
      throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    const cookies = response.headers.getSetCookie().map(one => one.split(';')[0])
    if (cookies.length > 0) cookie = cookies.join('; ')
    return ((await response.json()) as { data: Data }).data
  }
  const account = await request<{ organizations: { id: string }[] }>('POST', '/api/session', {
    email: EMAIL,
    password,
  })
  const organization = account.organizations[0]?.id
  const project = await request<{ id: string }>(
    'POST',
    `/api/organizations/${organization}/sample-project`,
  )
  const { key } = await request<{ key: string }>('POST', `/api/projects/${project.id}/keys`, {
    name: 'Demo',
  })
  return { client: createClient({ baseUrl: url, apiKey: key }), feed: `${url}/p/${project.id}` }
}

/** Sends the events of one day after another, until the signal aborts. */
async function play(client: Client, speed: number, signal: AbortSignal): Promise<void> {
  const now = new Date()
  let dayMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), FIRST_HOUR)
  let playedMs = dayMs
  while (!signal.aborted) {
    for (const { atMs, event } of listShopEvents(dayMs, dayMs + 24 * HOUR_MS)) {
      if (!(await pause((atMs - playedMs) / speed, signal))) return
      playedMs = atMs
      await client.events.create(event)
    }
    dayMs += 24 * HOUR_MS
  }
}

function toBanner(url: string, password: string): string {
  return `
The demo is running: ${url}

  Sign in with   ${EMAIL}
  Password       ${password}

An event arrives every few seconds.
Press Ctrl+C to stop. Nothing is kept.

`
}
