import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { parseId } from '../src/base/ids.ts'
import { launch, type TestBrowser } from './support/clients/chromium.ts'
import { closeCluster } from './support/servers/postgres.ts'
import { boot } from './support/servers/server.ts'
import { createKey } from './support/worlds/keys.ts'
import { createRequests } from './support/worlds/project.ts'
import { newTenant } from './support/worlds/tenant.ts'

// Makes the pictures of docs/ and the README from the product as it is, with its sample data. The
// manifest of the application names those of docs/ with their sizes.

const ROOT = resolve(import.meta.dirname, '..')
const MAX_FILM_BYTES = 400_000

interface View {
  width: number
  height: number
  /** Pixels of the picture for each pixel of the page. */
  scale: number
  scheme: 'light' | 'dark'
  /** From 0 to 100. */
  quality: number
}

interface Picture extends View {
  file: string
  maxBytes?: number
  /** Brings the feed into the state to show. */
  act(page: Page): Promise<unknown>
}

const PICTURES: Picture[] = [
  {
    file: 'docs/feed.webp',
    ...{ width: 1440, height: 900, scale: 1.5, scheme: 'light', quality: 82 },
    async act(page) {
      await page.getByRole('navigation').getByText('Payments').waitFor()
      // The names of users take the place of their ids.
      await page.waitForFunction(() => !document.body.innerText.includes('customer_'))
    },
  },
  {
    file: 'docs/event.webp',
    ...{ width: 390, height: 844, scale: 2, scheme: 'dark', quality: 82 },
    async act(page) {
      await page.getByRole('heading', { name: 'New payment' }).first().click()
      await page.getByText('currency').waitFor()
      // Nothing is under the pointer.
      await page.mouse.move(0, 0)
    },
  },
]

/** The picture at the start of /docs, light and dark. */
for (const scheme of ['light', 'dark'] as const)
  PICTURES.push({
    file: scheme === 'light' ? 'docs/start.webp' : 'docs/start-dark.webp',
    ...{ width: 960, height: 600, scale: 1.125, scheme, quality: 45, maxBytes: 60_000 },
    act: page => page.getByRole('heading', { name: 'Checkout is down' }).first().waitFor(),
  })

/** The moving picture of the README. */
const FILM: View & { file: string } = {
  file: '.github/feed.webp',
  ...{ width: 1040, height: 620, scale: 1, scheme: 'light', quality: 50 },
}
const PAYMENT = { channelName: 'Payments', title: 'New payment', icon: '💰' }
const BACKUP = { channelName: 'Backups', icon: '💾', thread: 'backup' }
const SCENES: readonly Scene[] = [
  { ms: 1_200 },
  { ms: 1_400, event: { ...PAYMENT, description: 'Grace Hopper paid €49 for a year' } },
  { ms: 1_400, event: { channelName: 'Sign-ups', title: 'New sign-up', icon: '👋' } },
  {
    ms: 2_000,
    event: {
      ...BACKUP,
      ...{ title: 'Backup failed', description: 'The disk is full', level: 'critical' },
      state: 'firing',
    },
  },
  { ms: 1_800, act: page => page.getByRole('heading', { name: 'Backup failed' }).first().click() },
  { ms: 1_800, act: page => page.getByRole('button', { name: 'Acknowledge' }).click() },
  { ms: 1_800, event: { ...BACKUP, title: 'Backup is fine again', state: 'resolved' } },
  { ms: 2_500, act: page => page.keyboard.press('Escape') },
]

/** The action before one picture of the film, and how long the picture is shown. */
interface Scene {
  ms: number
  event?: object
  act?(page: Page): Promise<void>
}

try {
  await using server = await boot()
  const { url } = server.server
  const { organization, account } = await newTenant(server)
  const { body } = await account.post(`/api/organizations/${organization.id}/sample-project`)
  const project: string = body.data.id
  // Neither the name nor the notice of sample data is on the pictures.
  await server.sql`update projects set name = 'Web shop', is_sample = false where is_sample`
  await server.sql`update accounts set name = 'Ada Lovelace' where id = ${account.uuid}`
  const { token } = await createKey(server.sql, {
    ...{ projectId: parseId('prj', project)!, name: 'film', scopes: ['events:write'] },
  })
  const v1 = createRequests(server.url, token)
  const [name = '', value = ''] = account.cookie.split('=')
  await using browser = await launch()
  const place = { url: `${url}/p/${project}`, cookie: { name, value, url } }
  for (const { file, act, maxBytes = MAX_FILM_BYTES, ...view } of PICTURES) {
    await using opened = await openFeed(browser, { ...view, ...place })
    await act(opened.page)
    save(file, await opened.shoot(), maxBytes)
  }
  await using film = await openFeed(browser, { ...FILM, ...place })
  const frames: Frame[] = []
  for (const { ms, event, act } of SCENES) {
    if (event) await v1.post('/v1/events', event)
    await act?.(film.page)
    // Rows, the panel and the socket move for a moment.
    await film.page.waitForTimeout(1_000)
    frames.push({ ms, webp: await film.shoot() })
  }
  save(FILM.file, toFilm(frames, FILM), MAX_FILM_BYTES)
} finally {
  await closeCluster()
}

function save(file: string, bytes: Buffer, maxBytes: number): void {
  if (bytes.length > maxBytes) throw new Error(`${file} has ${bytes.length} bytes`)
  writeFileSync(resolve(ROOT, file), bytes)
}

interface Place {
  /** The feed. */
  url: string
  cookie: { name: string; value: string; url: string }
}

/** Opens the feed, with a function that takes a picture of it. */
async function openFeed(
  browser: TestBrowser,
  { url, cookie, width, height, scale, scheme, quality }: View & Place,
) {
  const opened = await browser.open({ isPhone: width < 600 })
  const { page, context } = opened
  await context.addCookies([cookie])
  await opened.paint(scheme)
  const session = await context.newCDPSession(page)
  await session.send('Emulation.setDeviceMetricsOverride', {
    ...{ width, height, deviceScaleFactor: scale, mobile: width < 600 },
  })
  await page.goto(url)
  await page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
  // Users appear by their names, which are read after the rows.
  await page.locator('article .user').filter({ hasNotText: '_' }).first().waitFor()
  return {
    page,
    async shoot(): Promise<Buffer> {
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality })
      return Buffer.from(data, 'base64')
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

interface Frame {
  /** A picture of one frame. */
  webp: Buffer
  /** How long it is shown. */
  ms: number
}

/** Joins pictures to one that moves and begins again, as the container format of WebP says. */
function toFilm(frames: readonly Frame[], { width, height }: View): Buffer {
  const size = Buffer.concat([toUint24(width - 1), toUint24(height - 1)])
  const chunks = frames.map(({ webp, ms }) => {
    const place = Buffer.concat([toUint24(0), toUint24(0), size, toUint24(ms), Buffer.of(0b10)])
    return toChunk('ANMF', Buffer.concat([place, ...listImageChunks(webp)]))
  })
  const isAnimated = 0b10
  const header = toChunk('VP8X', Buffer.concat([Buffer.of(isAnimated, 0, 0, 0), size]))
  // White, and without an end.
  const loop = toChunk('ANIM', Buffer.of(255, 255, 255, 255, 0, 0))
  return toChunk('RIFF', Buffer.concat([Buffer.from('WEBP'), header, loop, ...chunks]))
}

/** Returns the chunks with the pixels of a picture. */
function listImageChunks(webp: Buffer): Buffer[] {
  const found: Buffer[] = []
  for (let at = 12; at < webp.length;) {
    const length = 8 + webp.readUInt32LE(at + 4)
    const end = at + length + (length % 2)
    if (/^(ALPH|VP8 |VP8L)$/.test(webp.toString('latin1', at, at + 4)))
      found.push(webp.subarray(at, end))
    at = end
  }
  return found
}

function toChunk(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8)
  head.write(name, 'latin1')
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
}

function toUint24(value: number): Buffer {
  const bytes = Buffer.alloc(3)
  bytes.writeUIntLE(value, 0, 3)
  return bytes
}
