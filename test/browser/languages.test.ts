import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, launch, type TestBrowser, type TestPage } from '../support/chromium.ts'
import { fakeApi } from '../support/fake-api.ts'
import { fakeBrowser } from '../support/fake-push.ts'
import { boot, type Booted } from '../support/server.ts'
import { findOverflow } from './screen-checks.ts'
import { SCREENS } from './screens.ts'

/** Screens with many texts, by a text of each in German. */
const GERMAN = {
  'sign-in': 'Passwort vergessen?',
  feed: 'Gestern',
  account: 'Aktive Sitzungen',
  organization: 'Umbenennen, verlassen oder löschen',
  server: 'Kontingente',
  'keys-requests': 'Anfragen pro Minute',
  webhook: 'Verpasste Ereignisse nachholen',
  'notifications-on': 'Test senden',
  channels: 'Ereignisse in 24 Stunden',
  'event-deliveries': 'Zustellungen',
}

describe.skipIf(!HAS_BROWSER)('the dashboard in German', () => {
  let server: Booted
  let browser: TestBrowser
  let shown: TestPage
  beforeAll(async () => {
    browser = await launch()
    server = await boot()
    shown = await browser.open({ isPhone: true })
  })
  afterAll(async () => {
    await shown[Symbol.asyncDispose]()
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** Opens a screen on a phone. */
  async function show(name: string): Promise<void> {
    const { path, isSignedIn = true, fake, prepare } = SCREENS.find(one => one.name === name)!
    const { context, page } = shown
    // The newest route answers. Pages miss routes that are set right after others were removed.
    if (fake) await fakeBrowser(context, fake)
    prepare?.(await fakeApi(context, { isSignedIn }))
    await shown.become('phone')
    await page.goto(server.url + path)
  }

  test('is chosen under Account, for the page and its manifest, until the browser decides again', async () => {
    const { page } = shown
    await show('account')
    const facts = () =>
      page.evaluate(() => {
        const { lang, dir } = document.documentElement
        const manifest = document.querySelector<HTMLLinkElement>('link[rel=manifest]')
        return [lang, dir, manifest?.href.split('/').at(-1)]
      })
    await page.getByText('Active sessions').waitFor()
    expect(await facts()).toEqual(['en', 'ltr', 'manifest.webmanifest'])
    await page.getByLabel('Language').selectOption('Deutsch')
    await page.getByText('Aktive Sitzungen').waitFor()
    expect(await facts()).toEqual(['de', 'ltr', 'manifest-de.webmanifest'])
    await page.getByLabel('Sprache').selectOption('Wie im Browser')
    await page.getByText('Active sessions').waitFor()
  })

  test('shows errors of the server in German, also those of fields', async () => {
    const { context, page } = shown
    const api = await fakeApi(context, { isSignedIn: false })
    const path = ['email']
    const message = 'Must be an e-mail address, such as ada@example.com'
    api.on('POST /api/session', ({ email }) =>
      email === 'ada'
        ? { status: 400, error: 'Validation error', details: [{ path, message }] }
        : {
            status: 401,
            code: 'wrong_credentials',
            error: 'The e-mail address or the password is wrong',
          },
    )
    await page.goto(`${server.url}/robots.txt`)
    await page.evaluate(() => localStorage.setItem('tidings.language', 'de'))
    await page.goto(`${server.url}/sign-in`)
    await page.getByLabel('E-Mail').fill('ada')
    await page.getByLabel('Passwort', { exact: true }).fill('wrong')
    await page.getByRole('button', { name: 'Anmelden', exact: true }).click()
    await page.getByText('Muss eine E-Mail-Adresse sein, zum Beispiel ada@example.com').waitFor()
    await page.getByLabel('E-Mail').fill('ada@example.com')
    await page.getByRole('button', { name: 'Anmelden', exact: true }).click()
    await page.getByText('Die E-Mail-Adresse oder das Passwort ist falsch.').waitFor()
  })

  test.each(Object.entries(GERMAN))('%s fits a phone and a wide screen', async (name, text) => {
    await shown.page.goto(`${server.url}/robots.txt`)
    await shown.page.evaluate(() => localStorage.setItem('tidings.language', 'de'))
    await show(name)
    await shown.page.getByText(text).first().waitFor()
    for (const device of ['phone', 'wide'] as const) {
      await shown.become(device)
      expect([device, await findOverflow(shown)]).toEqual([device, 0])
      const cut = await shown.page
        .locator('.bottom-bar > *')
        .evaluateAll(all => all.filter(one => one.scrollWidth > one.clientWidth).length)
      expect(cut).toBe(0)
    }
    expect(shown.problems).toEqual([])
  })
})
