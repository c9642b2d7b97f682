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
const EVENTS_PER_S = 100
const STREAM_S = 60
const LONG_FRAME_MS = 50
const KEPT = 500

/**
 * Measures the dashboard: first paint, frames while events stream in, and a feed of millions of
 * events.
 */
export async function benchDashboard(): Promise<void> {
  await using browser = await launch()
  try {
    await withServer(await cloneDatabase(), async ({ sql, url }) => {
      const organization = await newOrganization({ sql })
      const person = await newMember({ sql, url }, organization, 'admin')
      const { token } = await createKey(sql, {
        projectId: organization.project.uuid,
        name: 'bench',
        limit: 1_000_000_000,
      })
      const { post } = createRequests(url, token)
      const send = (title: string) => post('/v1/events', { channelName: 'ops', title, icon: '💰' })
      for (let count = 0; count < KEPT; count += 1) await send(`Event ${count}`)
      const path = `/p/${organization.project.id}`
      const paints: number[] = []
      const rows: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        await using opened = await enter(await browser.open({ isPhone: true }), url, person)
        await slowDown(opened.page)
        await opened.page.goto(url + path)
        await opened.page.locator('article').first().waitFor()
        rows.push(await opened.page.evaluate(() => performance.now()))
        paints.push(await readFirstPaint(opened.page))
      }
      print(`first contentful paint, CPU ${SLOWDOWN}x slower, empty cache`, paints, 1_000)
      print('the same, until the first rows appear', rows)
      await using opened = await enter(await browser.open(), url, person)
      await opened.page.goto(url + path)
      await opened.page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
      await stream(opened.page, send)
    })
    await withServer(await copyDatabase(await ensureBenchDatabase()), async ({ sql, url }) => {
      const person = await joinBigProject({ sql, url })
      const opens: number[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        await using opened = await enter(await browser.open(), url, person)
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

/** Streams events in, and prints how the page kept up, and whether its rows were readable. */
async function stream(page: Page, send: (title: string) => Promise<unknown>): Promise<void> {
  await page.evaluate(() => {
    const state = { frames: [] as number[], last: performance.now() }
    const samples = { count: 0, unreadable: 0 }
    Object.assign(globalThis, { benchFrames: state.frames, benchSamples: samples })
    const toOpacity = (element: Element | null): number =>
      element ? Number(getComputedStyle(element).opacity) * toOpacity(element.parentElement) : 1
    const isReadable = (row: Element) => {
      const { top, bottom } = row.getBoundingClientRect()
      const title = row.querySelector('h2')
      const isInView = bottom > 0 && top < innerHeight
      return !isInView || (toOpacity(title) === 1 && title?.textContent.trim() !== '')
    }
    const step = (at: number) => {
      state.frames.push(at - state.last)
      state.last = at
      requestAnimationFrame(step)
    }
    // Measuring every frame would slow the frames down.
    setInterval(() => {
      const rows = [...document.querySelectorAll('article')].slice(0, 30)
      samples.count += 1
      if (rows.length === 0 || !rows.every(isReadable)) samples.unreadable += 1
    }, 250)
    requestAnimationFrame(step)
  })
  const count = () => page.evaluate(() => document.querySelectorAll('*').length)
  const counts: number[] = []
  const began = performance.now()
  for (let sent = 0; sent < EVENTS_PER_S * STREAM_S; sent += 1) {
    const dueMs = began + (sent * 1_000) / EVENTS_PER_S
    const waitMs = dueMs - performance.now()
    if (waitMs > 1) await Bun.sleep(waitMs)
    void send(`Streamed ${sent}`)
    if (sent % (EVENTS_PER_S * 10) === EVENTS_PER_S * 5) counts.push(await count())
  }
  await page.getByText(`Streamed ${EVENTS_PER_S * STREAM_S - 1}`, { exact: true }).waitFor()
  const frames = await page.evaluate(
    () => (globalThis as unknown as { benchFrames: number[] }).benchFrames,
  )
  const samples = await page.evaluate(
    () =>
      (globalThis as unknown as { benchSamples: { count: number; unreadable: number } })
        .benchSamples,
  )
  const long = frames.filter(ms => ms > LONG_FRAME_MS)
  console.log(
    `${EVENTS_PER_S} events/s for ${STREAM_S} s: ${frames.length} frames, ` +
      `${((100 * long.length) / frames.length).toFixed(2)} % over ${LONG_FRAME_MS} ms (aim 1 %), ` +
      `longest ${Math.max(...frames).toFixed(0)} ms; elements in the page ${counts.join(', ')}`,
  )
  console.log(
    `visible rows readable in ${samples.count - samples.unreadable} of ${samples.count} samples`,
  )
}

async function withServer(
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

async function enter(
  opened: TestPage,
  url: string,
  { cookie }: SignedInAccount,
): Promise<TestPage> {
  const [name = '', value = ''] = cookie.split('=')
  await opened.context.addCookies([{ name, value, url }])
  return opened
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
