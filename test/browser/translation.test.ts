import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT } from '../support/fakes/api.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const PAYMENT = { channelName: 'payments', userId: 'ada', tags: ['vip'] }

/**
 * Replaces each text with elements, as the translators of Chrome and other browsers do, now and
 * after each change.
 */
function translatePage(): void {
  const isForbidden = (node: Node) =>
    Boolean((node.parentElement ?? undefined)?.closest('[translate=no], font, script, style, svg'))
  const translate = (root: Node) => {
    const texts: Text[] = []
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
    for (let node = walker.currentNode; ;) {
      if (node instanceof Text && node.data.trim() && !isForbidden(node)) texts.push(node)
      const next = walker.nextNode()
      if (!next) break
      node = next
    }
    for (const text of texts) {
      const outer = document.createElement('font')
      const inner = document.createElement('font')
      inner.textContent = text.data.toUpperCase()
      outer.append(inner)
      text.replaceWith(outer)
    }
  }
  translate(document.body)
  new MutationObserver(changes => {
    for (const { addedNodes, type, target } of changes) {
      if (type === 'characterData') translate(target)
      for (const node of addedNodes) if (node.isConnected) translate(node)
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true })
}

/** Runs in the page. Returns whether it notices that a text is replaced. */
async function isFollowed(): Promise<boolean> {
  const text = new Text('probe')
  const font = document.createElement('font')
  document.body.append(text)
  text.replaceWith(font)
  await Promise.resolve()
  font.remove()
  return Object.hasOwn(text, 'data')
}

/** Translates the page as soon as its scripts have run, before its requests are answered. */
const TRANSLATE_EARLY = `addEventListener('DOMContentLoaded', async () => {
  globalThis.wasFollowed = await (${isFollowed})()
  ;(${translatePage})()
})`

describe.skipIf(!HAS_BROWSER)('the translator of the browser', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  const timestamp = new Date().toISOString()

  /** Opens the feed with one event. */
  async function open({ isTranslated = false } = {}) {
    const opened = await dashboard.openFaked({
      isNew: true,
      prepare: async (api, context) => {
        api.emit({ title: 'Backup finished', channelName: 'ops', tags: ['nightly'], timestamp })
        if (isTranslated) await context.addInitScript({ content: TRANSLATE_EARLY })
      },
    })
    const { page } = opened
    const errors: string[] = []
    page.on('pageerror', error => errors.push(String(error)))
    await page.goto(`${dashboard.url}/p/${PROJECT}`)
    await page.locator('.pill-live').waitFor()
    await page.locator('article h2').waitFor()
    /** Returns what a person reads, without case. */
    const read = async () => (await page.locator('body').innerText()).toLowerCase()
    return { ...opened, errors, read }
  }

  const STEPS: [name: string, step: (it: Awaited<ReturnType<typeof open>>) => Promise<void>][] = [
    ['start', async () => {}],
    [
      'new events',
      async ({ api, page }) => {
        for (const n of [1, 2, 3]) {
          api.emit({ title: `Payment ${n}`, ...PAYMENT, timestamp })
          await until(async () => (await page.locator('article h2').count()) === n + 1)
        }
      },
    ],
    ['no connection', async ({ page }) => page.context().setOffline(true)],
    ['a connection', async ({ page }) => page.context().setOffline(false)],
    [
      'a search',
      async ({ page }) => {
        await page.locator('#search').fill('payment')
        await page.locator('#search').press('Enter')
        await until(async () => (await page.locator('article h2').count()) === 3)
      },
    ],
    ['an event', async ({ page }) => page.locator('article h2').first().click()],
    ['the list', async ({ page }) => page.keyboard.press('Escape')],
  ]

  test('a page that is translated while it loads shows what another one shows', async () => {
    await using plain = await open()
    await using translated = await open({ isTranslated: true })
    expect(await translated.page.evaluate('wasFollowed')).toBe(true)
    for (const [name, step] of STEPS) {
      for (const it of [plain, translated]) await step(it)
      let texts: string[] = []
      await until(async () => {
        texts = await Promise.all([plain.read(), translated.read()])
        return texts[0] === texts[1]
      }).catch(() => {})
      expect([name, texts[1]]).toEqual([name, texts[0]!])
    }
    expect(translated.errors).toEqual([])
  })
})
