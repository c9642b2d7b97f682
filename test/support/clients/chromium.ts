import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type CDPSession,
  type Page,
  type Request,
} from 'playwright-core'
import { scaled } from '../until.ts'

/** The same engine without windows and notifications. It starts pages for half of the work. */
const SHELL = '/usr/bin/chromium-headless-shell'
const PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]
const SCREENSHOTS = resolve(import.meta.dirname, '../../../data/screenshots')
const AXE = resolve(import.meta.dirname, '../../../node_modules/axe-core/axe.min.js')

/** Returns a Chromium of this machine; undefined if there is none. */
function findChromium({ canNotify = false } = {}): string | undefined {
  const named = process.env['CHROMIUM']
  if (named) return named
  return (canNotify ? PATHS : [SHELL, ...PATHS]).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const NO_CHROMIUM =
  'Left out: tests in a browser, without a Chromium. Debian: apt-get install chromium; elsewhere name one in CHROMIUM'

/** True if tests in a browser can run. In CI it is always true, so that a missing browser fails. */
export const HAS_BROWSER = findChromium() !== undefined || Boolean(process.env['CI'])
if (!HAS_BROWSER) console.warn(NO_CHROMIUM)

/** A browser that records policy violations and errors of its pages. */
export interface TestBrowser extends AsyncDisposable {
  open(options?: OpenOptions): Promise<TestPage>
}

export interface OpenOptions {
  isPhone?: boolean
  /** The language and the region of the reader. */
  locale?: string
  timezoneId?: string
  /** Allows service workers. Without them pages load sooner, and tests can answer every request. */
  hasWorker?: boolean
  /** Called before the first page is opened. */
  prepare?(context: BrowserContext): Promise<unknown>
}

export interface TestPage extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** Policy violations and thrown errors so far. */
  readonly problems: string[]
  /** Returns axe findings as `rule: where`; a second call for a page checks colours alone. */
  findBarriers(): Promise<string[]>
  /** Resolves when no request is under way, and the page has drawn what came of them. */
  settle(): Promise<void>
  /** With PICTURES set, saves a screenshot of the page to a folder that git ignores. */
  picture(name: string): Promise<void>
  /** Sets the colour scheme of the system. */
  paint(scheme: 'light' | 'dark'): Promise<void>
  /** Turns the page into that of a phone, or into a wide one, without a reload. */
  become(device: Device): Promise<void>
  /** Makes the page as good as a new one, except for clocks and scripts that a test has added. */
  reset(origin: string): Promise<void>
}

export type Device = 'phone' | 'wide' | 'desk'

const SIZES = {
  phone: { width: 390, height: 844 },
  wide: { width: 1280, height: 860 },
  desk: { width: 1440, height: 900 },
}

/** Returns a browser, which the files of a process share; with `canNotify`, one that has push. */
export async function launch(options: { canNotify?: boolean } = {}): Promise<TestBrowser> {
  const executablePath = findChromium(options)
  if (executablePath === undefined) throw new Error(NO_CHROMIUM)
  const used = takeBrowser(executablePath)
  const browser = await used.started
  const contexts = new Set<BrowserContext>()
  return {
    async open(options) {
      const opened = await open(browser, options)
      contexts.add(opened.context)
      opened.context.on('close', context => void contexts.delete(context))
      return opened
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...contexts].map(context => context.close()))
      releaseBrowser(used)
    },
  }
}

interface SharedBrowser {
  executablePath: string
  started: Promise<Browser>
  users: number
}

/** The browsers of this process, by executable. */
const browsers = new Map<string, SharedBrowser>()
/** The time for the next file to take over a browser. It ends with its process at the latest. */
const KEEP_MS = 2_000

function takeBrowser(executablePath: string): SharedBrowser {
  let browser = browsers.get(executablePath)
  if (!browser) {
    const started = chromium.launch({
      executablePath,
      // Root has no sandbox, and a container little shared memory. Beyond its limit, Chromium
      // starts a process for a page, but none in advance that no page uses.
      args: ['--no-sandbox', '--disable-dev-shm-usage', '--renderer-process-limit=1'],
    })
    const made: SharedBrowser = { executablePath, started, users: 0 }
    const forget = () =>
      void (browsers.get(executablePath) === made && browsers.delete(executablePath))
    started.then(one => one.once('disconnected', forget), forget)
    browsers.set(executablePath, made)
    browser = made
  }
  browser.users++
  return browser
}

function releaseBrowser(browser: SharedBrowser): void {
  browser.users--
  setTimeout(async () => {
    const { executablePath, started, users } = browser
    if (users > 0 || browsers.get(executablePath) !== browser) return
    browsers.delete(executablePath)
    await (await started).close()
  }, KEEP_MS)
}

async function open(browser: Browser, options: OpenOptions = {}): Promise<TestPage> {
  const { isPhone = false, locale = 'en-GB', timezoneId, hasWorker = false, prepare } = options
  let scheme: 'light' | 'dark' = 'light'
  const first = isPhone ? 'phone' : 'wide'
  let device: Device = first
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    viewport: SIZES[device],
    hasTouch: isPhone,
    isMobile: isPhone,
    locale,
    // Texts on the pages must not depend on the zone of this machine.
    timezoneId: timezoneId ?? 'UTC',
    serviceWorkers: hasWorker ? 'allow' : 'block',
  })
  context.setDefaultTimeout(scaled(30_000))
  const problems: string[] = []
  await context.exposeBinding('reportProblem', (_, text: string) => void problems.push(text))
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', event => {
      const { effectiveDirective, blockedURI, sample } = event
      const { reportProblem } = globalThis as unknown as { reportProblem(text: string): void }
      reportProblem(`policy: ${effectiveDirective} ${blockedURI} ${sample}`)
    })
  })
  await prepare?.(context)
  const page = await context.newPage()
  page.on('pageerror', ({ message }) => void problems.push(`thrown: ${message}`))
  const pending = new Set<Request>()
  let begun = 0
  page.on('request', request => {
    begun++
    pending.add(request)
  })
  page.on('requestfinished', request => void pending.delete(request))
  page.on('requestfailed', request => void pending.delete(request))
  let session: CDPSession | undefined
  const it: TestPage = {
    page,
    context,
    problems,
    async findBarriers() {
      const isKnown = await page.evaluate(() => 'axe' in globalThis)
      if (!isKnown) await page.evaluate(readFileSync(AXE, 'utf8'))
      const runOnly = isKnown ? ['color-contrast'] : undefined
      const { violations } = await page.evaluate(
        options => (globalThis as unknown as { axe: Axe }).axe.run(options),
        { resultTypes: ['violations'], ...(runOnly && { runOnly }) },
      )
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target} (${failureSummary})`),
      )
    },
    async settle() {
      let seen: number
      do {
        seen = begun
        await page.evaluate(untilDrawn)
      } while (pending.size > 0 || seen !== begun)
    },
    async picture(name) {
      if (process.env['PICTURES'] === undefined) return
      mkdirSync(SCREENSHOTS, { recursive: true })
      // `page.screenshot` would undo the size that `become` has set.
      session ??= await context.newCDPSession(page)
      const { data } = await session.send('Page.captureScreenshot')
      const path = join(SCREENSHOTS, `${name}-${device}-${scheme}.png`)
      writeFileSync(path, Buffer.from(data, 'base64'))
    },
    async paint(wanted) {
      scheme = wanted
      await page.emulateMedia({ colorScheme: wanted })
    },
    async become(wanted) {
      if (wanted === device) return
      device = wanted
      const mobile = wanted === 'phone'
      session ??= await context.newCDPSession(page)
      await session.send('Emulation.setDeviceMetricsOverride', {
        ...SIZES[wanted],
        screenWidth: SIZES[wanted].width,
        screenHeight: SIZES[wanted].height,
        mobile,
        deviceScaleFactor: 1,
      })
      await session.send('Emulation.setTouchEmulationEnabled', { enabled: mobile })
      await page.waitForFunction(
        ([width, isTouch]) =>
          screen.width === width && matchMedia('(pointer: coarse)').matches === isTouch,
        [SIZES[wanted].width, mobile] as const,
      )
    },
    async reset(origin) {
      for (const other of context.pages()) if (other !== page) await other.close()
      await page.goto('about:blank')
      session ??= await context.newCDPSession(page)
      // A pointer over a row of the next page would pause it.
      await page.mouse.move(0, 0)
      await it.become(first)
      // A change of the size makes the one of the context apply again.
      await session.send('Emulation.clearDeviceMetricsOverride')
      for (const size of [SIZES.desk, SIZES[first]]) await page.setViewportSize(size)
      await it.paint('light')
      await page.emulateMedia({ media: null, forcedColors: null })
      for (const routed of [page, context]) await routed.unrouteAll({ behavior: 'ignoreErrors' })
      await context.clearCookies()
      await context.clearPermissions()
      await session.send('Storage.clearDataForOrigin', { origin, storageTypes: 'local_storage' })
      await session.send('Page.resetNavigationHistory')
      problems.splice(0)
      pending.clear()
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
  return it
}

/** Runs in the page. Effects run after a frame, and may start requests. */
async function untilDrawn(): Promise<void> {
  for (let frames = 0; frames < 4; frames++) {
    await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))
  }
}

interface Axe {
  run(options: { runOnly?: string[]; resultTypes: string[] }): Promise<AxeResults>
}

interface AxeResults {
  violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[]
}

/** The sum of all layout shifts of a page since it was opened, and the elements that moved. */
export async function measureShift(page: Page): Promise<{ sum: number; moved: string[] }> {
  const shifts = await page.evaluate(listLayoutShifts)
  return {
    sum: shifts.reduce((sum, { value }) => sum + value, 0),
    moved: shifts.flatMap(({ value, moved }) => moved.map(one => `${value.toFixed(3)} ${one}`)),
  }
}

/** Runs in the page. */
async function listLayoutShifts(): Promise<{ value: number; moved: string[] }[]> {
  type Shift = PerformanceEntry & { value: number; sources: { node: Element | null }[] }
  const entries: Shift[] = []
  const observer = new PerformanceObserver(list => {
    entries.push(...(list.getEntries() as Shift[]))
  })
  observer.observe({ type: 'layout-shift', buffered: true })
  // Buffered entries come with the next frames.
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
  observer.disconnect()
  return entries.map(({ value, sources }) => ({
    value,
    moved: sources.map(({ node }) => `${node?.nodeName} ${node?.textContent?.slice(0, 60)}`),
  }))
}
