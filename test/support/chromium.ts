import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'

const PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]
const SCREENSHOTS = resolve(import.meta.dirname, '../../data/screenshots')
const AXE = resolve(import.meta.dirname, '../../node_modules/axe-core/axe.min.js')

/** The Chromium of this machine; undefined where there is none. */
function findChromium(): string | undefined {
  const named = process.env['CHROMIUM']
  if (named) return named
  return PATHS.find(path => existsSync(path))
}

const NO_CHROMIUM =
  'No Chromium, so no test in a browser. Debian: apt-get install chromium; elsewhere name one in CHROMIUM'

/** Whether tests in a browser can run. In CI they run in any case, and fail: a test that is skipped there is none. */
export const HAS_BROWSER = findChromium() !== undefined || Boolean(process.env['CI'])
if (!HAS_BROWSER) console.warn(NO_CHROMIUM)

/** A browser whose pages are watched: what they may not do, and what breaks in them, is kept. */
export interface TestBrowser extends AsyncDisposable {
  open(options?: OpenOptions): Promise<TestPage>
}

interface OpenOptions {
  isPhone?: boolean
  /** Whether pages may have their service worker; without it they are there sooner, and all requests can be answered. */
  hasWorker?: boolean
  /** Called before the first page is opened. */
  prepare?(context: BrowserContext): Promise<void>
}

export interface TestPage extends AsyncDisposable {
  page: Page
  context: BrowserContext
  /** What the policy refused and what was thrown, so far. */
  readonly problems: string[]
  /** What axe finds, each as `rule: where`; the second time of a page in other colours, in these alone. */
  findBarriers(): Promise<string[]>
  /** With PICTURES set, writes a picture of the page to a folder that git ignores. */
  picture(name: string): Promise<void>
  /** Changes the colours that the system wants. */
  paint(scheme: 'light' | 'dark'): Promise<void>
}

export async function launch(): Promise<TestBrowser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error(NO_CHROMIUM)
  const browser = await chromium.launch({
    executablePath,
    // Root has no sandbox, and a container little shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  return {
    open: options => open(browser, options),
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

async function open(browser: Browser, options: OpenOptions = {}): Promise<TestPage> {
  const { isPhone = false, hasWorker = false, prepare } = options
  let scheme: 'light' | 'dark' = 'light'
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    viewport: isPhone ? { width: 390, height: 844 } : { width: 1280, height: 860 },
    hasTouch: isPhone,
    isMobile: isPhone,
    locale: 'en-GB',
    serviceWorkers: hasWorker ? 'allow' : 'block',
  })
  context.setDefaultTimeout(30_000)
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
  return {
    page,
    context,
    problems,
    async findBarriers() {
      const isKnown = await page.evaluate(() => 'axe' in globalThis)
      if (!isKnown) await page.evaluate(readFileSync(AXE, 'utf8'))
      const runOnly = isKnown ? ['color-contrast'] : undefined
      const { violations } = await page.evaluate(
        options => (globalThis as unknown as { axe: Axe }).axe.run(options),
        runOnly ? { runOnly } : {},
      )
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => `${id}: ${target} (${failureSummary})`),
      )
    },
    async picture(name) {
      if (process.env['PICTURES'] === undefined) return
      mkdirSync(SCREENSHOTS, { recursive: true })
      const kind = `${isPhone ? 'phone' : 'wide'}-${scheme}`
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${kind}.png`) })
    },
    async paint(wanted) {
      scheme = wanted
      await page.emulateMedia({ colorScheme: wanted })
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

interface Axe {
  run(options: { runOnly?: string[] }): Promise<AxeResults>
}

interface AxeResults {
  violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[]
}
