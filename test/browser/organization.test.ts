import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { newAccount, PASSWORD } from '../support/worlds/browser.ts'
import { HAS_BROWSER, launch, type TestBrowser } from '../support/clients/chromium.ts'
import { newOrganization } from '../support/worlds/signed-in-account.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { until } from '../support/until.ts'

const NEW_PASSWORD = 'orange lantern forty'

describe.skipIf(!HAS_BROWSER)('dashboard.md §2 and §11 with the real server', () => {
  let server: Booted
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await launch()
    server = await boot()
  })
  afterAll(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** Opens a separate browser with helpers for common actions. */
  async function open() {
    const it = await browser.open()
    const { page } = it
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const field = (label: string) => page.getByLabel(label, { exact: true })
    return {
      ...it,
      button,
      field,
      go: (path: string) => page.goto(server.url + path),
      says: (text: string) => page.getByText(text).filter({ visible: true }).first().waitFor(),
      async signIn(email: string, password: string) {
        await page.goto(`${server.url}/sign-in`)
        await field('E-mail').fill(email)
        await field('Password').fill(password)
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Account' }).waitFor()
      },
      /** Clicks what downloads a file, and returns its text. */
      async download(name: string, role: 'link' | 'button' = 'link') {
        const started = page.waitForEvent('download')
        await page.getByRole(role, { name, exact: true }).click()
        return Bun.file(await (await started).path()).text()
      },
      /** Returns the link that is shown once, with this server's address. */
      async takeLink(label: string) {
        const text = await page.getByLabel(label).locator('code').textContent()
        const { pathname, hash } = new URL(text ?? '')
        await page.getByLabel(label).getByRole('button', { name: 'I have saved it' }).click()
        return pathname + hash
      },
    }
  }

  /** Creates an organization, and signs in its owner. */
  async function found() {
    const organization = await newOrganization(server)
    const owner = await newAccount(server)
    await server.sql`
      insert into memberships (organization_id, account_id, role)
      values (${organization.uuid}, ${owner.uuid}, 'owner')
    `
    const ada = await open()
    await ada.signIn(owner.email, PASSWORD)
    return { ada, owner, path: `/settings/organizations/${organization.id}` }
  }

  test('a member is invited by link, gets another role and a new password, and is removed; the log lists it all', async () => {
    const { ada, path } = await found()
    const members = `${path}/members`
    await using _ada = ada
    await ada.go(members)
    await ada.button('Invite a member').click()
    await ada.button('Create link').click()
    const invitation = await ada.takeLink('Invite link')

    await using grace = await open()
    await grace.go(invitation)
    await grace.field('Your name').fill('Grace Hopper')
    await grace.field('E-mail').fill('grace@example.com')
    await grace.field('Password').fill(PASSWORD)
    await grace.button('Create account and join').click()
    await grace.button('Account').waitFor()
    await grace.go(members)
    await grace.says('grace@example.com')
    const tabs = grace.page.getByRole('navigation', { name: 'Organization' }).getByRole('link')
    expect(await tabs.allTextContents()).toEqual(['General', 'Members'])
    expect(await grace.button('Invite a member').count()).toBe(0)

    await ada.go(members)
    await ada.field('Role of Grace Hopper').selectOption('admin')
    await ada.says('Grace Hopper now has the role admin.')
    await grace.page.reload()
    await grace.button('Invite a member').waitFor()
    expect(await grace.field('Role of Test account').count()).toBe(0)

    const createLink = ada.button('Create password-reset link for Grace Hopper')
    await ada.button('Invite a member').click()
    await ada.button('Create link').click()
    await createLink.click()
    await ada.takeLink('Password-reset link')
    await ada.takeLink('Invite link')
    await ada.button('Withdraw the password-reset link for Grace Hopper').click()
    await ada.says('Password-reset link withdrawn. It no longer works.')
    await ada.says('No pending password-reset links.')
    await createLink.click()
    const reset = await ada.takeLink('Password-reset link')
    await using elsewhere = await open()
    await elsewhere.go(reset)
    await elsewhere.field('New password').fill(NEW_PASSWORD)
    await elsewhere.button('Set password').click()
    await elsewhere.says('Password changed')
    await grace.page.reload()
    await grace.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await elsewhere.signIn('grace@example.com', NEW_PASSWORD)

    await ada.page
      .locator('li', { hasText: 'grace@example.com' })
      .getByRole('button', { name: 'Remove', exact: true })
      .click()
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await until(async () => (await ada.field('Role of Grace Hopper').count()) === 0)
    await elsewhere.go('/')
    await elsewhere.says('You are not a member of any project.')

    await elsewhere.go('/account')
    const own = await elsewhere.download('Export your data', 'button')
    expect(JSON.parse(own).account).toMatchObject({ email: 'grace@example.com' })
    await elsewhere.button('Delete account').click()
    await elsewhere.button('Delete permanently').click()
    await elsewhere.page.getByRole('heading', { name: 'Sign in' }).waitFor()

    await ada.page.getByRole('link', { name: 'Audit log' }).click()
    await ada.says('joined')
    const lines = await ada.page.locator('.audit-log li p:first-child').allTextContents()
    expect(lines.slice(0, 9).map(line => line.trim())).toEqual([
      'Test account removed Grace Hopper',
      'Someone not signed in used the reset link for Grace Hopper',
      'Test account created a reset link for Grace Hopper',
      'Test account withdrew the reset link for Grace Hopper',
      'Test account created a reset link for Grace Hopper',
      'Test account created an invite',
      'Test account changed the role of Grace Hopper',
      'Grace Hopper joined',
      'Test account created an invite',
    ])
    await ada.says('from member, to admin')
    await ada.field('Type').selectOption('invite')
    await until(async () => (await ada.page.locator('.audit-log li').count()) === 2)
    const exported = (await ada.download('Export')).trimEnd().split('\n')
    expect(exported.map(line => JSON.parse(line).action)).toEqual([
      'invite.created',
      'invite.created',
    ])
    expect([ada.problems, grace.problems, elsewhere.problems]).toEqual([[], [], []])
  })

  test('a session is ended from another browser, and a new password ends the others', async () => {
    const { ada, owner } = await found()
    await using _ada = ada
    await using phone = await open()
    await phone.signIn(owner.email, PASSWORD)
    await ada.go('/account')
    await ada.says('This browser')
    // An answer from before the change comes after it. It is not shown, and asked for again.
    const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let asked = 0
    await ada.page.route('**/api/sessions?*', async route => {
      if (asked++ > 0) return route.continue()
      const response = await route.fetch()
      held.resolve()
      await release.promise
      await route.fulfill({ response })
    })
    await ada.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await held.promise
    await ada.page.locator('.items').getByRole('button').click()
    await until(() => asked === 2)
    await phone.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    const late = ada.page.waitForEvent('requestfinished')
    release.resolve()
    await late
    expect(await ada.page.locator('.items').getByRole('button').count()).toBe(0)

    await phone.signIn(owner.email, PASSWORD)
    await ada.button('Change password').click()
    await ada.field('Current password').fill(PASSWORD)
    await ada.field('New password').fill('short')
    await ada.page.keyboard.press('Enter')
    await ada.says('Must have at least 12 characters')
    await ada.field('New password').fill(NEW_PASSWORD)
    await ada.page.keyboard.press('Enter')
    await ada.says('Other sessions ended: 1.')
    await phone.page.getByRole('heading', { name: 'Sign in' }).waitFor()

    await ada.button('Sign out everywhere').click()
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click()
    await ada.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(ada.problems).toEqual([])
  })

  test('a form takes the focus when it appears, and never takes it from a field that the reader has chosen', async () => {
    const { ada } = await found()
    await using _ada = ada
    const { page } = ada
    // A reader who is faster than the next frame.
    await page.addInitScript(() => {
      const isChosen = new WeakSet<Element>()
      const choose = () => {
        const last = [...document.querySelectorAll<HTMLElement>('.inline-form input')].at(-1)
        if (!last || isChosen.has(last)) return
        isChosen.add(last)
        last.focus()
      }
      new MutationObserver(choose).observe(document, { childList: true, subtree: true })
    })
    /** Returns what has the focus after the next frame, with its effects. */
    const readFocus = () =>
      page.evaluate(async () => {
        await new Promise(resolve => requestAnimationFrame(resolve))
        await new Promise(resolve => setTimeout(resolve))
        const { activeElement } = document
        return activeElement?.getAttribute('name') ?? activeElement?.textContent
      })
    await ada.go('/account')
    await ada.button('Change password').click()
    await ada.field('New password').waitFor()
    expect(await readFocus()).toBe('newPassword')
    await ada.button('Cancel').click()
    await ada.button('Change password').waitFor()
    expect(await readFocus()).toBe('Change password')
    expect(ada.problems).toEqual([])
  })

  test('an organization is renamed, its projects are created, changed and deleted; its last owner can only delete it', async () => {
    const { ada, owner, path } = await found()
    await using _ada = ada
    await server.sql`update accounts set is_operator = true where id = ${owner.uuid}`
    await ada.go(path)
    await ada.button('Rename').click()
    await ada.field('Name').fill('Analytical Engines')
    await ada.page.keyboard.press('Enter')
    await ada.page.getByRole('heading', { name: 'Analytical Engines', level: 1 }).waitFor()

    await ada.button('Create a project').click()
    await ada.field('Name').fill('Newsletter')
    await ada.page.keyboard.press('Enter')
    // The first request is not answered.
    await ada.page.route('**/api/projects/prj_*', () => {}, { times: 1 })
    await ada.button('Settings of Newsletter').click()
    await ada.button('Cancel').click()
    await ada.button('Settings of Newsletter').click()
    await ada.field('Retention in days').fill('soon')
    await ada.page.keyboard.press('Enter')
    await ada.page.locator('.issue').waitFor()
    // Another admin renames it meanwhile.
    await ada.field('Name').fill('Newsletter')
    await server.sql`update projects set name = 'Newspaper' where name = 'Newsletter'`
    const read = ada.page.waitForResponse(/api\/projects\/prj_\w+$/)
    await ada.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await (await read).finished()
    await ada.button('Delete this project').waitFor()
    await ada.field('Retention in days').fill('90')
    await ada.page.keyboard.press('Enter')
    await ada.button('Settings of Newspaper').click()
    expect(await ada.field('Retention in days').inputValue()).toBe('90')
    await ada.button('Delete this project').click()
    await ada.button('Delete permanently').first().click()
    await ada.says('Newspaper deleted.')
    await until(async () => (await ada.button('Settings of Newspaper').count()) === 0)

    await ada.button('Leave').click()
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click()
    await ada.says('An organization needs at least one owner')
    await ada.button('Create an organization').click()
    await ada.field('Name').fill('Second one')
    await ada.page.keyboard.press('Enter')
    await ada.page.getByRole('heading', { name: 'Second one', level: 1 }).waitFor()
    await ada.go(path)
    await ada.button('Delete organization').click()
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Delete permanently' }).click()
    await ada.says('Analytical Engines deleted.')

    await ada.go('/settings/server')
    await ada.says('Postgres')
    await ada.says('deleted the organization')
    await ada.go('/')
    await ada.says('You are not a member of any project.')
    await ada.button('Sign out').click()
    await ada.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(ada.problems).toEqual([])
  })
})
