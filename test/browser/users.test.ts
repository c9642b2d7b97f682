import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { setRole } from '../support/fakes/organization.ts'
import { fakeUsers } from '../support/fakes/users.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const AT = '2026-11-01T10:00:00.000Z'

describe.skipIf(!HAS_BROWSER)('dashboard.md §6 users', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  async function visit(path: string, prepare: (api: FakeApi) => void = () => {}) {
    const opened = await dashboard.openFaked({
      prepare: api => {
        api.emit(
          { title: 'New payment', userId: 'user/1' },
          { title: 'Other', userId: 'user_2' },
          { title: 'Signed up', userId: 'user/1' },
        )
        fakeUsers(api, [
          { userId: 'user/1', aliases: ['ada@example.com'], properties: { plan: 'pro' } },
          { userId: 'user_2', aliases: ['grace@example.com'] },
          { userId: '..', aliases: [] },
        ])
        prepare(api)
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}${path}`)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const toPath = () => decodeURIComponent(page.url().slice(dashboard.url.length))
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    return { ...opened, button, toPath, titles }
  }

  test('are listed and searched, and each links to their page', async () => {
    await using it = await visit('')
    await it.page.getByRole('link', { name: 'Users' }).click()
    await it.page.getByText('plan: pro').waitFor()
    // The name, the properties and the time are in one line.
    const [item] = await it.page.locator('.users > li').all()
    expect((await item?.boundingBox())?.height).toBeLessThan(70)
    await it.page.getByLabel('Search users').fill('user_')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('plan: pro').waitFor({ state: 'detached' })
    expect(it.toPath()).toBe(`/p/${PROJECT}/users?search=user_`)
    await it.page.getByRole('link', { name: 'user_2' }).click()
    await it.page.getByRole('heading', { name: 'user_2' }).waitFor()
    await it.page.goBack()
    await it.page.getByLabel('Search users').fill('nobody')
    await it.page.keyboard.press('Enter')
    await it.page.getByText('No users found').waitFor()
    await it.page.getByRole('link', { name: 'Show all users' }).click()
    await it.page.getByText('plan: pro').waitFor()
    expect(it.problems).toEqual([])
  })

  test('§4 are never older than before when a reader returns', async () => {
    await using it = await visit('/users/user_2')
    const comeBack = () =>
      it.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await it.page.getByRole('heading', { name: 'Aliases' }).waitFor()
    const answer = it.api.handler('GET /api/projects/:id/users/:user')
    const answers = ['starter', 'business']
    it.api.on('GET /api/projects/:id/users/:user', (body, url) => {
      const { data }: any = answer(body, url)
      return { data: { ...data, properties: { plan: answers.pop() } } }
    })
    /** Returns to the page; the result answers its requests. */
    const askAgain = async () => {
      const held: (() => void)[] = []
      it.api.hold = () => new Promise(resolve => held.push(resolve))
      it.api.requests.splice(0)
      await comeBack()
      await until(() => it.api.requests.includes('GET /api/projects/:id/users/:user'))
      return () => held.forEach(release => release())
    }
    const answerOlder = await askAgain()
    const answerNewer = await askAgain()
    it.api.hold = () => Promise.resolve()
    answerNewer()
    await it.page.getByText('business').waitFor()
    const older = it.page.waitForEvent('requestfinished', {
      predicate: request => request.url().endsWith('/users/user_2'),
    })
    answerOlder()
    await older
    await it.page.getByText('business').waitFor()
    expect(await it.page.getByText('starter').count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('keep all pages of a long list when a reader returns', async () => {
    const route = 'GET /api/projects/:id/users'
    await using it = await visit('/users', api =>
      api.on(route, (_, { searchParams }) => {
        const at = Number(searchParams.get('cursor'))
        const user = { id: at, userId: `user_${at}`, aliases: [], properties: {}, updatedAt: AT }
        return { data: { items: [user], nextCursor: at < 21 ? String(at + 1) : null } }
      }),
    )
    const rows = it.page.locator('.users > li')
    for (let count = 1; count < 22; count++) {
      await until(async () => (await rows.count()) === count)
      await it.button('Show more').click()
    }
    await until(async () => (await rows.count()) === 22)
    it.api.requests.splice(0)
    await it.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await until(() => it.api.requests.filter(one => one === route).length === 20)
    await it.settle()
    expect(await rows.count()).toBe(22)
  })

  test('appear by name, with each ID and property once', async () => {
    await using it = await visit('', api => {
      api.on('POST /api/projects/:id/users/names', () => ({
        data: { items: [{ userId: 'user_7', name: '\u202eAda Lovelace' }] },
      }))
      const properties = { name: 'Ada Lovelace', email: 'ada@example.com', plan: 'pro' }
      fakeUsers(api, [{ userId: 'user_7', aliases: ['ada@example.com'], properties }])
    })
    await it.page.getByRole('link', { name: 'Users' }).click()
    const item = it.page.locator('.users > li')
    await item.getByRole('link', { name: 'Ada Lovelace' }).waitFor()
    expect(await item.locator('bdi').allTextContents()).toEqual([
      'Ada Lovelace',
      'user_7',
      'ada@example.com',
      'plan: pro',
    ])
    const { top, bottom } = await item.evaluate(element => element.getBoundingClientRect().toJSON())
    expect(bottom - top).toBeLessThan(90)
    await item.getByRole('link').click()
    await it.page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    await it.page.locator('.user-id', { hasText: 'user_7' }).waitFor()
  })

  test('have an avatar in one colour everywhere, which is no text', async () => {
    await using it = await visit('', api =>
      api.on('POST /api/projects/:id/users/names', () => ({
        data: { items: [{ userId: 'user/1', name: 'Ada Lovelace' }] },
      })),
    )
    const look = async (place: string) => {
      const avatar = it.page.locator(`${place} .initials`).first()
      await avatar.and(it.page.locator('[data-initials="AL"]')).waitFor()
      return avatar.evaluate(element => [
        element.getAttribute('aria-hidden'),
        element.textContent,
        getComputedStyle(element, '::before').content,
        getComputedStyle(element).backgroundColor,
      ])
    }
    const inRow = await look('article')
    expect(inRow.slice(0, 3)).toEqual(['true', '', '"AL"'])
    await it.page.getByText('Signed up').click()
    expect(await look('.panel')).toEqual(inRow)
    await it.page.getByRole('link', { name: 'Users' }).click()
    expect(await look('.users')).toEqual(inRow)
    expect(await it.page.locator('.users .initials').count()).toBe(3)
    await it.page.getByRole('link', { name: 'Ada Lovelace' }).click()
    expect(await look('.page-title')).toEqual(inRow)
    expect(it.problems).toEqual([])
  })

  test('have avatars that are readable in each colour, also in forced colours', async () => {
    await using it = await visit('', api =>
      api.emit(
        ...Array.from({ length: 40 }, (_, at) => ({ title: `Paid ${at}`, userId: `user_${at}` })),
      ),
    )
    // Rows are drawn a few at a time.
    await it.page.locator('article .initials').nth(39).waitFor()
    const measure = () => it.page.locator('article .initials').evaluateAll(measureContrasts)
    for (const scheme of ['light', 'dark'] as const) {
      await it.paint(scheme)
      const { contrasts, colours } = await measure()
      expect(colours).toBe(8)
      expect(Math.min(...contrasts)).toBeGreaterThan(4.5)
    }
    await it.page.emulateMedia({ forcedColors: 'active' })
    const { contrasts, edges } = await measure()
    expect(Math.min(...contrasts)).toBeGreaterThan(4.5)
    // An edge takes the place of the background.
    expect(edges).toEqual(['1px solid'])
    expect(it.problems).toEqual([])
  })

  test('have a page with properties, counts and new events as they happen', async () => {
    await using it = await visit('/users/user%2F1')
    await it.page.getByRole('heading', { name: 'user/1' }).waitFor()
    await it.page.getByText('1,234').waitFor()
    await it.page.getByText('plan').waitFor()
    await until(async () => (await it.titles()) === 'Signed up,New payment')
    await until(() => it.api.subscriptions.at(-1)?.search.q === 'user:"user/1"')
    it.api.emit({ title: 'Of another', userId: 'user_2' }, { title: 'Left', userId: 'user/1' })
    await until(async () => (await it.titles()) === 'Left,Signed up,New payment')
    await it.page.getByText('Left').click()
    await it.page.locator('.panel').getByRole('heading', { name: 'Left' }).waitFor()
    expect(it.toPath()).toBe(`/p/${PROJECT}/e/evt_5?q=user:"user/1"`)
  })

  test('have a list that stays where its reader is while new events come', async () => {
    const title = (n: number) => ({ title: `Event ${n}`, userId: 'user/1' })
    await using it = await visit('/users/user%2F1', api =>
      api.emit(...Array.from({ length: 220 }, (_, at) => title(at))),
    )
    await until(async () => {
      await it.page.evaluate(() => scrollTo(0, document.body.scrollHeight))
      return (await it.titles()).endsWith('Signed up,New payment')
    })
    it.api.emit(title(220))
    await it.page.getByText('Paused · 1 new').waitFor()
    expect(await it.titles()).toEndWith('Signed up,New payment')
    await it.page.getByRole('button', { name: 'Paused · 1 new' }).click()
    await until(async () => (await it.titles()).startsWith('Event 220,'))
  })

  test('are shown to a viewer without buttons to change them', async () => {
    await using it = await visit('/users/user_2', api => setRole(api, 'viewer'))
    await it.page.getByText('grace@example.com').waitFor()
    const offered = await it.page.locator('main button').allTextContents()
    expect(offered).toEqual(['Copy', 'Live'])
  })

  test('reliability §9 a user_id of dot segments leads nowhere', async () => {
    await using it = await visit('/users')
    await it.page.getByText('..', { exact: true }).waitFor()
    expect(await it.page.getByRole('link', { name: '..', exact: true }).count()).toBe(0)
    await it.page.goto(`${dashboard.url}/p/${PROJECT}/users/nobody`)
    await it.page.getByRole('heading', { name: 'User not found' }).waitFor()
  })
})

/** The contrast of each text with its background, how many backgrounds there are, and the edges. */
function measureContrasts(elements: Element[]) {
  const toLuminance = (colour: string) => {
    const parts = colour.match(/[\d.]+/g)?.map(Number) ?? []
    const [red = 0, green = 0, blue = 0] = parts
      .slice(0, 3)
      .map(part => (colour.startsWith('rgb') ? part / 255 : part))
      .map(part => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const styles = elements.map(element => getComputedStyle(element))
  return {
    contrasts: styles.map(({ color, backgroundColor }) => {
      const [less = 0, more = 0] = [color, backgroundColor]
        .map(toLuminance)
        .sort((one, other) => one - other)
      return (more + 0.05) / (less + 0.05)
    }),
    colours: new Set(styles.map(({ backgroundColor }) => backgroundColor)).size,
    edges: [
      ...new Set(
        styles.map(({ borderTopWidth, borderTopStyle }) => `${borderTopWidth} ${borderTopStyle}`),
      ),
    ],
  }
}
