import { once } from 'node:events'
import type { Page } from 'playwright-core'
import { connect, type Sql } from '../../src/database/sql.ts'
import { launch, type TestPage } from '../support/clients/chromium.ts'
import { createKey } from '../support/worlds/keys.ts'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
} from '../support/worlds/signed-in-account.ts'
import { createRequests } from '../support/worlds/project.ts'
import { cloneDatabase, closeCluster, copyDatabase } from '../support/servers/postgres.ts'
import { BIG_PROJECT, ensureBenchDatabase } from './read-data.ts'
import { makeKey, startTidings } from './server.ts'
import { median } from './wrk.ts'
import { toId } from '../../src/base/ids.ts'

const ROUNDS = 5
const SLOWDOWN = 4
const KEPT = 500

/** Measures the dashboard: first paint, and a feed of millions of events. */
export async function benchDashboard(): Promise<void> {
  await using browser = await launch()
  try {
    await withServer(await cloneDatabase(), async ({ sql, url }) => {
      const { account, path, post } = await createWatchedProject({ sql, url })
      const send = (title: string) => post('/v1/events', { channelName: 'ops', title, icon: '💰' })
      for (let count = 0; count < KEPT; count += 1) await send(`Event ${count}`)
      const paints: number[] = []
      const rows: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        await using opened = await enter(await browser.open({ isPhone: true }), url, account)
        await slowDown(opened.page)
        await opened.page.goto(url + path)
        await opened.page.locator('article').first().waitFor()
        rows.push(await opened.page.evaluate(() => performance.now()))
        paints.push(await readFirstPaint(opened.page))
      }
      print(`first contentful paint, CPU ${SLOWDOWN}x slower, empty cache`, paints, 1_000)
      print('the same, until the first rows appear', rows)
    })
    await withServer(await copyDatabase(await ensureBenchDatabase()), async ({ sql, url }) => {
      const account = await joinBigProject({ sql, url })
      const opens: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        await using opened = await enter(await browser.open(), url, account)
        await opened.page.goto(`${url}/p/${toId('prj', BIG_PROJECT)}`)
        await opened.page.locator('article').first().waitFor()
        await opened.page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
        opens.push(await opened.page.evaluate(() => performance.now()))
      }
      print('feed of a project with 5 million events, rows shown and live', opens, 1_500)
    })
  } finally {
    await closeCluster()
  }
}

/** Starts a server on a database, runs the work, and stops the server. */
export async function withServer(
  databaseUrl: string,
  run: (server: { sql: Sql; url: string }) => Promise<void>,
): Promise<void> {
  const { child, url } = await startTidings(databaseUrl, await makeKey(databaseUrl))
  const sql = connect(databaseUrl, { name: 'bench', max: 2 })
  try {
    const { port } = new URL(url)
    await run({ sql, url: `http://localhost:${port}` })
  } finally {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await sql.end()
  }
}

/** Signs a member in, in a new browser context. */
export async function enter(
  opened: TestPage,
  url: string,
  { cookie }: SignedInAccount,
): Promise<TestPage> {
  const [name = '', value = ''] = cookie.split('=')
  await opened.context.addCookies([{ name, value, url }])
  return opened
}

/** Creates a project with an admin. Returns the path of its feed, and what sends events to it. */
export async function createWatchedProject(server: { sql: Sql; url: string }) {
  const organization = await newOrganization(server)
  const account = await newMember(server, organization, 'admin')
  const { id, uuid: projectId } = organization.project
  const { token } = await createKey(server.sql, { projectId, name: 'bench', limit: 1_000_000_000 })
  return { account, path: `/p/${id}`, post: createRequests(server.url, token).post }
}

/** Inserts a member of the project with half of all events. */
async function joinBigProject(server: { sql: Sql; url: string }): Promise<SignedInAccount> {
  const [row] = await server.sql<[{ uuid: string }]>`
    select organization_id as uuid from projects where id = ${BIG_PROJECT}
  `
  return newMember(server, row, 'admin')
}

async function slowDown(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN })
}

function readFirstPaint(page: Page): Promise<number> {
  return page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
  )
}

function print(what: string, values: number[], aimMs?: number): void {
  const all = values.map(ms => ms.toFixed(0)).join(', ')
  const aim = aimMs === undefined ? '' : `, aim ${aimMs} ms`
  console.log(`${what}: median ${median(values).toFixed(0)} ms of ${all}${aim}`)
}
