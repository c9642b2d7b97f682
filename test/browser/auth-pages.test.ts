import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { ACCOUNT, PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { offerProviders } from '../support/fakes/openid.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §1-2 the auth pages', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Opens a page without a session. */
  async function arrive(path: string, prepare: (api: FakeApi) => void = () => {}) {
    const opened = await dashboard.openFaked({
      isSignedIn: false,
      prepare,
    })
    await opened.page.goto(dashboard.url + path)
    const field = (label: string) => opened.page.getByLabel(label, { exact: true })
    const button = (name: string) => opened.page.getByRole('button', { name, exact: true })
    const toPath = () => opened.page.url().slice(dashboard.url.length)
    return { ...opened, field, button, toPath }
  }

  test('sample data opens from the quick start, and is removed in one click', async () => {
    const withSample = (isThere: boolean) => ({
      ...ACCOUNT,
      organizations: ACCOUNT.organizations.map(organization => ({
        ...organization,
        projects: [
          ...organization.projects,
          ...(isThere ? [{ id: 'prj_3', name: 'Sample shop', isSample: true }] : []),
        ],
      })),
    })
    await using it = await arrive('/setup#s3cret', api => {
      const show = (isThere: boolean) =>
        api.on('GET /api/me', () => ({ data: withSample(isThere) }))
      api.on('GET /api/setup', () => ({ data: {} }))
      api.on('POST /api/organizations/org_1/sample-project', () => {
        show(true)
        return { status: 201, data: { id: 'prj_3' } }
      })
      api.on('DELETE /api/organizations/org_1/sample-project', () => {
        show(false)
        return { data: { id: 'prj_3' } }
      })
    })
    await it.field('Your name').fill('Ada')
    await it.field('E-mail').fill('ada@example.com')
    await it.field('Password').fill('a long enough phrase')
    await it.button('Create account').click()
    await it.button('Look around with sample data').click()
    await it.page.getByText('Sample data of an invented shop').waitFor()
    expect(it.toPath()).toBe('/p/prj_3')
    await it.button('Remove it').click()
    await it.page.waitForURL(url => !url.pathname.includes('prj_3'))
    expect(it.api.requests).toContain('DELETE /api/organizations/org_1/sample-project')
    expect(it.problems).toEqual([])
  })

  test('a link without its secret asks for it, and a complete link can be pasted', async () => {
    await using it = await arrive('/setup', api => api.on('GET /api/setup', () => ({ data: {} })))
    await it.field('Setup link').fill('  http://localhost:3000/setup#s3cret ')
    await it.button('Create account').click()
    await it.page.getByRole('heading', { name: 'Your first event' }).waitFor()
    expect(it.api.bodies.get('POST /api/setup').token).toBe('s3cret')
  })

  test('a key is created only on request, and asks for the password again; Escape cancels', async () => {
    await using it = await arrive('/sign-in?next=%2Fp%2Fprj_2%2Fstart', api => {
      const makeKey = api.handler('POST /api/projects/:id/keys')
      let isVerified = false
      api.on('POST /api/projects/:id/keys', (body, url) =>
        isVerified ? makeKey(body, url) : { status: 403, code: 'verification_needed', error: 'No' },
      )
      api.on('POST /api/session/verify', ({ password }) => {
        isVerified = password === 'right'
        return isVerified
          ? { data: ACCOUNT }
          : { status: 401, code: 'wrong_credentials', error: 'The password is wrong' }
      })
    })
    const autocomplete = (label: string) => it.field(label).getAttribute('autocomplete')
    expect(await autocomplete('E-mail')).toBe('username webauthn')
    expect(await autocomplete('Password')).toBe('current-password')
    await it.button('Show Password').click()
    expect(await it.field('Password').getAttribute('type')).toBe('text')
    await it.button('Sign in').click()
    // No link to the page creates a key.
    await it.button('Create a key').waitFor()
    expect(it.api.requests).not.toContain('POST /api/projects/:id/keys')
    await it.button('Create a key').click()
    await it.page.getByRole('dialog').waitFor()
    await it.page.keyboard.press('Escape')
    await it.page.getByText('requires that you confirm that it is you').waitFor()
    await it.button('Retry').click()
    for (const password of ['wrong', 'right']) {
      await it.field('Password').fill(password)
      await it.page.keyboard.press('Enter')
      if (password === 'wrong') await it.page.getByText('The password is wrong.').waitFor()
    }
    await it.page.getByText('tdg_example').waitFor()
    expect(await it.page.getByRole('dialog').count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('each invalid field says what is wrong, and the first one has the focus', async () => {
    await using it = await arrive('/setup#s3cret', api => {
      api.on('GET /api/setup', () => ({ data: {} }))
      api.on('POST /api/setup', () => ({
        status: 400,
        details: [
          { path: ['email'], message: 'Must be an e-mail address', code: 'invalid_format' },
          { path: ['password'], message: 'Must have at least 10 characters', code: 'too_short' },
          { path: ['token'], message: 'Required', code: 'required' },
        ],
      }))
    })
    await it.button('Create account').click()
    await it.page.getByText('Must be an e-mail address').waitFor()
    expect(await it.field('E-mail').evaluate(input => input === document.activeElement)).toBe(true)
    expect(await it.field('E-mail').getAttribute('aria-invalid')).toBe('true')
    expect(await it.field('Your name').getAttribute('aria-invalid')).toBe('false')
    expect(await it.page.getByRole('alert').textContent()).toBe('token: Required')
    const described = await it.field('Password').getAttribute('aria-describedby')
    const [, issue = ''] = described?.split(' ') ?? []
    expect(await it.page.locator(`[id="${issue}"]`).textContent()).toContain('at least 10')
  })

  const PROXY = 'A proxy in front of the server asks you to sign in'
  test.each([
    ['a browser without cookies', { data: ACCOUNT }, 'this browser keeps no cookies'],
    [
      'a proxy that redirects',
      { raw: { status: 302, headers: { location: 'https://id.example/' }, body: '' } },
      PROXY,
    ],
    [
      'a proxy that answers 401 with a page',
      { raw: { status: 401, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' } },
      PROXY,
    ],
  ])('%s is named, and the form keeps its values', async (_, answer, text) => {
    await using it = await arrive('/sign-in', api => {
      api.on('POST /api/session', () => answer)
      api.on('GET /api/me', () => ({ status: 401, code: 'signed_out', error: 'Sign in first' }))
    })
    await it.field('E-mail').fill('ada@example.com')
    await it.field('Password').fill('a long enough phrase')
    await it.page.keyboard.press('Enter')
    await it.page.getByText(text).waitFor()
    expect(await it.field('E-mail').inputValue()).toBe('ada@example.com')
  })

  test('reliability §6 a delay counts down, and nothing is sent before it is over', async () => {
    await using it = await arrive('/sign-in', api =>
      api.on('POST /api/session', () => ({
        status: 429,
        message: 'Too many attempts, try again in 2 s',
        retryAfter: 2,
      })),
    )
    await it.button('Sign in').click()
    await it.button('Try again in 2 s').waitFor()
    await it.page.keyboard.press('Enter')
    await it.button('Try again in 1 s').waitFor()
    await it.button('Sign in').waitFor()
    expect(it.api.requests.filter(name => name === 'POST /api/session')).toHaveLength(1)
  })

  test('with passwords off, only an owner is shown a password, on request', async () => {
    await using it = await arrive('/sign-in', api => {
      offerProviders(api, { hasPasswords: false })
      const invite = {
        organization: { name: 'Engines' },
        role: 'member',
        invitedBy: { name: 'Ada' },
      }
      api.on('POST /api/invites/look', () => ({ data: { ...invite, email: null } }))
    })
    const provider = it.button('Continue with Analytical Engines')
    await provider.waitFor()
    await it.button('Sign in with a passkey').waitFor()
    expect(await it.field('Password').isVisible()).toBe(false)
    await it.page.getByText('Sign in with an owner’s password').click()
    await it.field('Password').waitFor()
    expect(await it.findBarriers()).toEqual([])
    await it.page.goto(`${dashboard.url}/invite#secret`)
    await provider.waitFor()
    expect(await it.field('Password').count()).toBe(0)
    expect(it.problems).toEqual([])
  })

  test('a link cannot make sign-in lead to another site', async () => {
    await using it = await arrive(`/sign-in?next=${encodeURIComponent('//evil.example')}`)
    await it.button('Sign in').click()
    await it.page.getByText('No events yet').waitFor()
    expect(it.toPath()).toBe('/overview')
  })

  test('a visitor who is not signed in sees the sign-in page after one request', async () => {
    await using it = await arrive('/sign-in')
    const errors: string[] = []
    it.page.on(
      'console',
      message => void (message.type() === 'error' && errors.push(message.text())),
    )
    await it.page.reload()
    await it.field('Password').waitFor()
    const read = () => it.api.requests.filter(request => request.startsWith('GET'))
    expect(read()).toEqual(['GET /api/sign-in', 'GET /api/sign-in'])
    expect(errors).toEqual([])
    // The feed asks for the account, and leads back.
    await it.page.evaluate(project => {
      history.pushState(null, '', `/p/${project}`)
      dispatchEvent(new PopStateEvent('popstate'))
    }, PROJECT)
    await it.page.waitForURL(/sign-in\?next/)
    expect(read()).toContain('GET /api/me')
  })

  test('the sign-in page leads an account that is signed in to its feed', async () => {
    await using it = await arrive('/sign-in', api => {
      offerProviders(api, { isSignedIn: true })
      api.on('GET /api/me', () => ({ data: ACCOUNT }))
    })
    await it.page.getByText('No events yet').waitFor()
    expect(it.toPath()).toBe('/overview')
  })

  test.each(['/p/%E0%A4%A', '/p/prj_none'])('%s is no page, and says so', async path => {
    await using it = await arrive(path)
    if (path.endsWith('none')) await it.button('Sign in').click()
    await it.page.getByRole('heading', { name: 'Page not found' }).waitFor()
    // A signed-in reader keeps the navigation.
    const pages = it.page.getByRole('navigation', { name: 'Project' })
    await until(async () => (await pages.count()) === Number(path.endsWith('none')))
    // Its link leads on.
    await it.page.getByRole('link', { name: 'Go to the feed' }).click()
    await until(() => it.toPath() !== path)
    await it.page.getByRole('heading', { name: 'Page not found' }).waitFor({ state: 'detached' })
    expect(it.problems).toEqual([])
  })
})
