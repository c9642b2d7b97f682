import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from 'playwright-core'
import { launch, type TestBrowser } from './support/clients/chromium.ts'
import { closeCluster } from './support/servers/postgres.ts'
import { boot } from './support/servers/server.ts'
import { newTenant } from './support/worlds/tenant.ts'

// Makes the pictures of docs/ from the product as it is, with its sample data. The manifest of the
// application names them with their sizes.

const DOCS = resolve(import.meta.dirname, '../docs')
const QUALITY = 82

interface Picture {
  name: string
  width: number
  height: number
  /** Pixels of the picture for each pixel of the page. */
  scale: number
  scheme: 'light' | 'dark'
  /** Brings the feed into the state to show. */
  act(page: Page): Promise<unknown>
}

const PICTURES: readonly Picture[] = [
  {
    name: 'feed.webp',
    ...{ width: 1440, height: 900, scale: 1.5, scheme: 'light' },
    async act(page) {
      await page.getByRole('navigation').getByText('Payments').waitFor()
      // The names of users take the place of their ids.
      await page.waitForFunction(() => !document.body.innerText.includes('customer_'))
    },
  },
  {
    name: 'event.webp',
    ...{ width: 390, height: 844, scale: 2, scheme: 'dark' },
    async act(page) {
      await page.getByRole('heading', { name: 'New payment' }).first().click()
      await page.getByText('currency').waitFor()
      // Nothing is under the pointer.
      await page.mouse.move(0, 0)
    },
  },
]

try {
  await using server = await boot()
  const { url } = server.server
  const { organization, account } = await newTenant(server)
  const { body } = await account.post(`/api/organizations/${organization.id}/sample-project`)
  // Neither the name nor the notice of sample data is on the pictures.
  await server.sql`update projects set name = 'Web shop', is_sample = false where is_sample`
  await server.sql`update accounts set name = 'Ada Lovelace' where id = ${account.uuid}`
  const [name = '', value = ''] = account.cookie.split('=')
  await using browser = await launch()
  for (const picture of PICTURES)
    await take(browser, {
      ...picture,
      url: `${url}/p/${body.data.id}`,
      cookie: { name, value, url },
    })
} finally {
  await closeCluster()
}

interface Place {
  /** The feed. */
  url: string
  cookie: { name: string; value: string; url: string }
}

async function take(browser: TestBrowser, picture: Picture & Place): Promise<void> {
  const { name, url, cookie, width, height, scale, scheme, act } = picture
  await using opened = await browser.open({ isPhone: width < 600 })
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
  await act(page)
  const { data } = await session.send('Page.captureScreenshot', {
    ...{ format: 'webp', quality: QUALITY },
  })
  writeFileSync(resolve(DOCS, name), Buffer.from(data, 'base64'))
}
