import type { Disposable } from 'playwright-core'
import type { TestBrowser, TestPage } from '../support/clients/chromium.ts'
import { fakeApi, type FakeApi } from '../support/fakes/api.ts'
import { fakeBrowser } from '../support/fakes/push.ts'
import type { Screen } from './screens.ts'

/** Shows screens one after another. */
export interface ScreenPages extends AsyncDisposable {
  /** Opens a screen on a phone. Each one begins without cookies and storage. */
  show(screen: Screen, change?: FakeApi['change']): Promise<TestPage>
}

/** Shares one page between all screens at `url`. A new page costs more than the checks of one. */
export function openScreens(browser: TestBrowser, url: string): ScreenPages {
  let shown: TestPage | undefined
  let faked: Disposable | undefined
  return {
    async show({ path, isSignedIn = true, fake, prepare }, change) {
      shown ??= await browser.open({
        isPhone: true,
        prepare: context => context.addInitScript(() => globalThis.localStorage?.clear()),
      })
      const { context, page, problems } = shown
      await context.clearCookies()
      await faked?.dispose()
      faked = fake && (await fakeBrowser(context, fake))
      const api = await fakeApi(context, { isSignedIn })
      prepare?.(api)
      if (change) api.change = change
      await shown.become('phone')
      await shown.paint('light')
      problems.splice(0)
      await page.goto(url + path)
      return shown
    },
    async [Symbol.asyncDispose]() {
      await shown?.[Symbol.asyncDispose]()
    },
  }
}
