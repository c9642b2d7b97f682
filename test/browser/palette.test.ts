import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT } from '../support/fakes/api.ts'
import { until } from '../support/until.ts'
import { newAccount, PASSWORD } from '../support/worlds/browser.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md: the keyboard', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function visit(path: string) {
    const opened = await dashboard.openFaked({
      prepare: async (api, context) => {
        await context.grantPermissions(['clipboard-read', 'clipboard-write'])
        api.emit({ title: 'New payment' }, { title: 'Deployed', channelName: 'deploys' })
      },
    })
    const { page } = opened
    await page.goto(dashboard.url + path)
    const toPath = () => decodeURIComponent(page.url().slice(dashboard.url.length))
    const options = () => page.getByRole('option').allTextContents()
    const chosen = () =>
      page.evaluate(() => {
        const id = document.activeElement?.getAttribute('aria-activedescendant')
        return id ? document.getElementById(id)?.textContent : undefined
      })
    return { ...opened, toPath, options, chosen }
  }

  test('opens pages with g and a letter, / and ? everywhere, except while typing', async () => {
    await using it = await visit('/account')
    await it.page.getByRole('heading', { level: 1 }).waitFor()
    // Pages without a project use the last one.
    await it.page.evaluate(project => localStorage.setItem('tidings.project', project), PROJECT)
    await it.page.reload()
    await it.page.getByRole('heading', { level: 1 }).waitFor()
    await it.page.keyboard.press('/')
    await until(() => it.toPath() === `/p/${PROJECT}`)
    const search = it.page.getByLabel('Search events')
    await until(() => search.evaluate(input => input === document.activeElement))
    await it.page.keyboard.type('gp?/')
    expect(await search.inputValue()).toBe('gp?/')
    await it.page.keyboard.press('Control+k')
    await it.page.getByRole('dialog').waitFor()
    await it.page.keyboard.press('Escape')
    await it.page.getByRole('dialog').waitFor({ state: 'detached' })
    await until(() => search.evaluate(input => input === document.activeElement))
    await search.fill('')
    // The first one closes the suggestions, and the second one leaves the field.
    await it.page.keyboard.press('Escape')
    await it.page.keyboard.press('Escape')
    for (const [key, path] of Object.entries({
      t: '/open',
      c: '/channels',
      u: '/users',
      w: '/settings/webhooks',
      k: '/settings/keys',
      f: '',
    })) {
      await it.page.keyboard.press('g')
      await it.page.keyboard.press(key)
      await until(() => it.toPath() === `/p/${PROJECT}${path}`)
    }
    await it.page.keyboard.press('g')
    await it.page.keyboard.press('o')
    await until(() => it.toPath() === '/overview')
    await it.page.keyboard.press('g')
    await it.page.keyboard.press('f')
    await until(() => it.toPath() === `/p/${PROJECT}`)
    await it.page.keyboard.press('?')
    await it.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await it.page.keyboard.press('g')
    await it.page.keyboard.press('u')
    await it.page.keyboard.press('Escape')
    await it.page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(it.toPath()).toBe(`/p/${PROJECT}`)
    expect(it.problems).toEqual([])
  })

  test('works on a layout without Latin letters, with Caps Lock, and beside an input method', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Deployed').waitFor()
    /** Presses keys as a browser reports them. */
    const press = (...presses: Omit<KeyboardEventInit, 'view'>[]) =>
      it.page.evaluate(keys => {
        for (const key of keys)
          document.activeElement?.dispatchEvent(
            new KeyboardEvent('keydown', { ...key, bubbles: true, cancelable: true }),
          )
      }, presses)
    // A Russian keyboard: g c, j and Ctrl+K.
    await press({ key: 'п', code: 'KeyG' }, { key: 'с', code: 'KeyC' })
    await until(() => it.toPath() === `/p/${PROJECT}/channels`)
    await press({ key: 'G', code: 'KeyG' }, { key: 'F', code: 'KeyF' })
    await until(() => it.toPath() === `/p/${PROJECT}`)
    await it.page.getByText('Deployed').waitFor()
    await press({ key: 'о', code: 'KeyJ' })
    await until(() => it.page.evaluate(() => document.activeElement?.tagName === 'ARTICLE'))
    await press({ key: 'л', code: 'KeyK', ctrlKey: true })
    await it.page.keyboard.type('dplys')
    await until(async () => (await it.options()).join() === ' deploysChannel')
    // Safari reports Enter like this when it ends a composition.
    await press({ key: 'Enter', code: 'Enter', keyCode: 229 })
    expect(await it.options()).toEqual([' deploysChannel'])
    await it.page.keyboard.press('Enter')
    await until(() => it.toPath() === `/p/${PROJECT}?channel=chn_deploys`)
    expect(it.problems).toEqual([])
  })

  test('the palette searches words and letters, is navigated by arrows, and returns the focus', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Deployed').waitFor()
    await it.page.keyboard.press('j')
    await it.page.keyboard.press('Control+k')
    await it.page.getByRole('option', { name: 'deploys' }).waitFor()
    const first = await it.chosen()
    await it.page.keyboard.press('ArrowUp')
    const last = await it.chosen()
    expect(last).toContain('Sign out')
    await it.page.keyboard.press('ArrowDown')
    expect(await it.chosen()).toBe(first)
    await it.page.keyboard.press('Escape')
    await it.page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await it.page.evaluate(() => document.activeElement?.tagName)).toBe('ARTICLE')
    await it.page.keyboard.press('Control+k')
    await it.page.keyboard.type('dplys')
    await until(async () => (await it.options()).join() === ' deploysChannel')
    await it.page.keyboard.press('Enter')
    await until(() => it.toPath() === `/p/${PROJECT}?channel=chn_deploys`)
    await it.page.keyboard.press('Control+k')
    await it.page.keyboard.type('theme dark')
    // On a busy machine the browser handles keys before the event of a closed dialog.
    await it.page.evaluate(async () => {
      const press = (options: KeyboardEventInit) =>
        document.activeElement?.dispatchEvent(
          new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...options }),
        )
      press({ key: 'Enter' })
      for (let turn = 0; turn < 100; turn++) await Promise.resolve()
      press({ key: 'k', code: 'KeyK', ctrlKey: true })
    })
    await until(async () => (await it.page.locator('html').getAttribute('data-theme')) === 'dark')
    await it.page.keyboard.type('copy')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('Link copied.').waitFor()
    expect(await it.page.evaluate(() => navigator.clipboard.readText())).toBe(it.page.url())
    it.api.on('DELETE /api/session', () => ({ status: 503, code: 'unavailable', error: 'Not now' }))
    await it.page.keyboard.press('Control+k')
    await it.page.keyboard.type('sign out')
    await it.page.getByRole('option', { name: 'Sign out' }).waitFor()
    await it.page.keyboard.press('Enter')
    await it.page.locator('.toast').getByText('Not now.').waitFor()
    expect(it.problems).toEqual([])
  })

  test('the palette leads to the overview, and from there to every project', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Deployed').waitFor()
    const find = async (text: string, option: string) => {
      await it.page.keyboard.press('Control+k')
      await it.page.getByRole('option', { name: 'deploys' }).waitFor()
      await it.page.keyboard.type(text)
      await until(async () => (await it.options()).join() === option)
    }
    await find('newsletter', ' NewsletterProject')
    await it.page.keyboard.press('Escape')
    await find('web shop', '')
    await it.page.keyboard.press('Escape')
    await find('overview', 'Overview g o')
    await it.page.keyboard.press('Enter')
    await until(() => it.toPath() === '/overview')
    await it.page.getByRole('heading', { level: 1 }).waitFor()
    await find('web shop', ' Web shopProject')
    await it.page.keyboard.press('Enter')
    await until(() => it.toPath() === `/p/${PROJECT}`)
    expect(it.problems).toEqual([])
  })

  test('keys typed while the palette loads are its first text', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    await it.page.getByText('Deployed').waitFor()
    const loading = Promise.withResolvers<void>()
    await it.page.route('**/*.js', async route => {
      await loading.promise
      await route.continue()
    })
    await it.page.getByLabel('Search events').focus()
    await it.page.keyboard.press('Control+k')
    await it.page.keyboard.type('dplx')
    await it.page.keyboard.press('Backspace')
    loading.resolve()
    await it.page.getByRole('dialog').waitFor()
    await it.page.keyboard.type('ys')
    await until(async () => (await it.options()).join() === ' deploysChannel')
    expect(await it.page.getByLabel('Search events').inputValue()).toBe('')
    expect(it.problems).toEqual([])
  })

  test('a script that could not be loaded takes no keys, and is loaded again', async () => {
    await using it = await visit(`/p/${PROJECT}`)
    const { page } = it
    let isDown = true
    await page.route(/(on-demand|settings-pages)-1\.js/, route =>
      isDown ? route.abort() : route.continue(),
    )
    // The feed loads the panel and the palette ahead of their use, when the pointer moves.
    const preload = page.waitForEvent('requestfailed', request =>
      request.url().endsWith('/on-demand-1.js'),
    )
    await page.getByText('Deployed').hover()
    await preload
    const failure = page.getByRole('alert').filter({ hasText: 'The connection was lost' })
    const press = (name: string) => failure.getByRole('button', { name, exact: true }).click()
    const search = page.getByLabel('Search events')
    const fail = async () => {
      await page.keyboard.press('Control+k')
      await page.keyboard.type('dplys')
      await failure.waitFor()
    }
    await fail()
    expect(await it.findBarriers()).toEqual([])
    await it.picture('palette-failed')
    await press('Close')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await search.focus()
    await page.keyboard.type('payments')
    expect(await search.inputValue()).toBe('payments')
    await search.fill('')
    await fail()
    isDown = false
    await press('Retry')
    await until(async () => (await it.options()).join() === ' deploysChannel')
    expect(await page.evaluate(() => document.activeElement?.role)).toBe('combobox')

    isDown = true
    await page.reload()
    await page.getByRole('link', { name: 'Deployed' }).click()
    await failure.waitFor()
    await press('Close')
    await failure.waitFor({ state: 'detached' })
    // A new visit needs no button.
    isDown = false
    await page.getByRole('link', { name: 'Deployed' }).click()
    await page.locator('.panel').getByRole('heading', { name: 'Deployed' }).waitFor()

    isDown = true
    await page.locator('.sidebar').getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('link', { name: 'API Keys' }).first().click()
    await failure.waitFor()
    await it.picture('page-failed')
    isDown = false
    await press('Retry')
    await page.getByRole('heading', { name: 'API Keys', level: 1 }).waitFor()
    expect(it.problems).toEqual([])
  })

  test('with the real server: from sign-in to an event and the mute of its channel', async () => {
    const tenant = await newTenant(dashboard.server)
    const account = await newAccount(dashboard.server)
    await dashboard.server.sql`
      insert into memberships (organization_id, account_id, role)
      values (${tenant.organization.uuid}, ${account.uuid}, 'viewer')
    `
    await tenant.send({ title: 'Old payment', channelName: 'payments' })
    await tenant.send({ title: 'New deploy', channelName: 'deploys' })
    await using it = await dashboard.browser.open()
    const { page } = it
    const { keyboard } = page
    await page.goto(`${dashboard.url}/sign-in`)
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('name'))
    await until(async () => (await focused()) === 'email')
    await keyboard.type(account.email)
    await keyboard.press('Tab')
    await keyboard.type(PASSWORD)
    await keyboard.press('Enter')
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Old payment').waitFor()
    await keyboard.press('j')
    await keyboard.press('j')
    await keyboard.press('Enter')
    await page.locator('.panel').getByRole('heading', { name: 'Old payment' }).waitFor()
    await page.locator('.panel').getByRole('heading', { name: 'Deliveries' }).waitFor()
    await keyboard.press('Control+k')
    await keyboard.type('mute this')
    await page.getByRole('option', { name: 'Mute this channel payments' }).waitFor()
    await keyboard.press('Enter')
    await page.getByText('Channel muted.').waitFor()
    await page.getByRole('link', { name: 'payments muted' }).waitFor()
    await keyboard.press('Escape')
    await page.locator('.panel').waitFor({ state: 'detached' })
    await keyboard.press('g')
    await keyboard.press('c')
    const bells = page.locator('main .items .bell')
    await until(async () => (await bells.count()) === 2)
    const muted = page.locator('main .items .bell[aria-pressed=false]')
    expect(await muted.evaluateAll(all => all.map(bell => bell.closest('li')?.innerText))).toEqual([
      expect.stringContaining('payments'),
    ])
    expect(it.problems).toEqual([])
  })
})
