import type { Disposable } from 'playwright-core'
import type { Device, TestBrowser, TestPage } from '../support/clients/chromium.ts'
import { fakeApi, type FakeApi } from '../support/fakes/api.ts'
import { fakeBrowser } from '../support/fakes/push.ts'
import type { Screen } from './screens.ts'

interface ShowOptions extends Partial<Pick<FakeApi, 'change' | 'hold'>> {
  device?: Device
}

/** Shows screens one after another. */
export interface ScreenPages extends AsyncDisposable {
  /** Opens a screen, on a phone by default. Each one begins without cookies and storage. */
  show(screen: Screen, options?: ShowOptions): Promise<TestPage>
}

/** Shares one page between all screens at `url`. A new page costs more than the checks of one. */
export function openScreens(browser: TestBrowser, url: string): ScreenPages {
  let shown: TestPage | undefined
  let faked: Disposable | undefined
  return {
    async show({ path, isSignedIn = true, fake, prepare }, { device = 'phone', ...more } = {}) {
      shown ??= await browser.open({
        isPhone: true,
        prepare: context =>
          context.addInitScript(() => location.protocol !== 'about:' && localStorage.clear()),
      })
      const { context, page, problems } = shown
      await context.clearCookies()
      await faked?.dispose()
      faked = fake && (await fakeBrowser(context, fake))
      const api = await fakeApi(context, { isSignedIn })
      prepare?.(api)
      Object.assign(api, more)
      await shown.become(device)
      await shown.paint('light')
      problems.splice(0)
      // An address that differs in its hash alone would not be loaded.
      if (path.includes('#')) await page.goto('about:blank')
      await page.goto(url + path)
      return shown
    },
    async [Symbol.asyncDispose]() {
      await shown?.[Symbol.asyncDispose]()
    },
  }
}
