import type { BrowserContext } from 'playwright-core'
import { launch, type OpenOptions, type TestBrowser, type TestPage } from '../clients/chromium.ts'
import { fakeApi, type FakeApi } from '../fakes/api.ts'
import { boot, type Booted } from '../servers/server.ts'
import type { SignedInAccount } from './signed-in-account.ts'

/** A browser, and the server whose pages it opens. The tests of a file share both. */
export interface Dashboard extends AsyncDisposable {
  browser: TestBrowser
  server: Booted
  url: string
  /** Opens a page that a fake API answers. */
  openFaked(options?: FakedOptions): Promise<TestPage & { api: FakeApi }>
  /** Opens a page with the session of an account. */
  openFor(account: SignedInAccount, options?: OpenOptions): Promise<TestPage>
}

interface FakedOptions extends Omit<OpenOptions, 'prepare'> {
  /** The initial state of the session. */
  isSignedIn?: boolean
  /** Opens a new page, for a test that sets the time or adds scripts. */
  isNew?: boolean
  /** Lets the test move the clock of the page. */
  hasClock?: boolean
  /** Called before the page is opened. */
  prepare?(api: FakeApi, context: BrowserContext): unknown
}

/** Starts a browser, and a server that delivers nothing by default. */
export async function openDashboard(
  overrides: Parameters<typeof boot>[0] = {},
  options: Parameters<typeof boot>[1] = { kinds: [] },
): Promise<Dashboard> {
  const [browser, server] = await Promise.all([launch(), boot(overrides, options)])
  /** Pages of tests that have ended, by their options. A new page costs more than most tests. */
  const idle = new Map<string, TestPage[]>()
  return {
    browser,
    server,
    url: server.url,
    async openFaked(options = {}) {
      const { isSignedIn = true, isNew = false, hasClock = false, prepare, ...others } = options
      const name = JSON.stringify([hasClock, others])
      let api: FakeApi | undefined
      const setUp = async (context: BrowserContext) => {
        api = await fakeApi(context, { isSignedIn })
        await prepare?.(api, context)
      }
      const known = isNew ? undefined : idle.get(name)?.pop()
      await known?.reset(server.url)
      if (known) await setUp(known.context)
      const opened =
        known ??
        (await browser.open({
          ...others,
          prepare: async context => {
            if (hasClock) await context.clock.install()
            await setUp(context)
          },
        }))
      const leave = async () => void idle.set(name, [...(idle.get(name) ?? []), opened])
      return { ...opened, ...(!isNew && { [Symbol.asyncDispose]: leave }), api: api! }
    },
    async openFor({ cookie }, others) {
      const opened = await browser.open(others)
      const [name = '', value = ''] = cookie.split('=')
      await opened.context.addCookies([{ name, value, url: server.url }])
      return opened
    },
    async [Symbol.asyncDispose]() {
      await browser[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}
