import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { CDPSession } from 'playwright-core'
import {
  HAS_BROWSER,
  launch,
  type TestBrowser,
  type TestPage,
} from '../support/clients/chromium.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { newAccount, PASSWORD } from '../support/worlds/browser.ts'
import { toOrigin } from '../support/worlds/passkeys.ts'
import { newOrganization } from '../support/worlds/signed-in-account.ts'
import { insertTotpSecret, toTotpCode } from '../support/worlds/totp.ts'

describe.skipIf(!HAS_BROWSER)('passkeys and codes with the real server', () => {
  let server: Booted
  let browser: TestBrowser
  let it: TestPage
  let devices: CDPSession
  let authenticatorId: string
  beforeAll(async () => {
    ;[browser, server] = await Promise.all([launch(), boot({}, { kinds: [] })])
    it = await browser.open()
    // The virtual authenticator accepts at once what the browser offers in the e-mail field.
    await it.context.addInitScript(() => {
      PublicKeyCredential.isConditionalMediationAvailable = async () =>
        localStorage.getItem('offer') !== null
    })
    devices = await it.context.newCDPSession(it.page)
    await devices.send('WebAuthn.enable', { enableUI: false })
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    const added = await devices.send('WebAuthn.addVirtualAuthenticator', { options })
    authenticatorId = added.authenticatorId
  })
  afterAll(async () => {
    await it[Symbol.asyncDispose]()
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const button = (name: string) => it.page.getByRole('button', { name, exact: true })
  const field = (label: string) => it.page.getByLabel(label, { exact: true })
  const says = (text: string) => it.page.getByText(text).filter({ visible: true }).first().waitFor()
  const go = (path: string) => it.page.goto(toOrigin(server) + path)
  const isSignedIn = () => button('Account').waitFor()

  async function enterPassword(email: string) {
    await field('E-mail').fill(email)
    await field('Password').fill(PASSWORD)
    await button('Sign in').click()
  }

  async function signOut() {
    await it.context.clearCookies()
    await go('/sign-in?next=/account')
  }

  test('a passkey and an app are added, sign in, and stop when they are copied or removed', async () => {
    const account = await newAccount(server)
    await go('/sign-in?next=/account')
    await enterPassword(account.email)
    await isSignedIn()

    await button('Add a passkey').click()
    await field('Name').fill('Laptop')
    await button('Continue').click()
    await says('Passkey added. You can sign in with it from now on.')

    await server.sql`
      update sessions set verified_at = now() - interval '1 hour' where account_id = ${account.uuid}
    `
    await button('Set up').click()
    await it.picture('verify-passkey')
    await button('Use a passkey').click()
    const secret = await it.page
      .getByLabel('Or type this key into the app')
      .locator('code')
      .textContent()
    await it.picture('account-totp')
    await field('Code').fill(toTotpCode(secret ?? ''))
    await button('Turn on').click()
    await says('Recovery codes left: 0.')
    await button('Create recovery codes').click()
    const codes = await it.page.locator('.secret-once code').textContent()
    await it.picture('account-recovery-codes')
    await button('I have saved it').click()
    await it.picture('account-passkeys')

    await signOut()
    await it.picture('sign-in-passkey')
    await enterPassword(account.email)
    await field('Code').waitFor()
    await it.picture('sign-in-code')
    await field('Code').fill(codes?.split('\n')[0] ?? '')
    await button('Sign in').click()
    await isSignedIn()

    await signOut()
    await button('Sign in with a passkey').click()
    await isSignedIn()

    // The browser offers passkeys by itself.
    await it.page.evaluate(() => localStorage.setItem('offer', 'yes'))
    await signOut()
    await isSignedIn()

    // The server does not take the first one that is chosen there.
    const seen = Promise.withResolvers<void>()
    let tries = 0
    await it.page.route('**/api/session/passkey', async route => {
      if (tries++ > 0) return seen.promise.then(() => route.continue())
      const json = { success: false, code: 'unavailable', error: 'Not now' }
      await route.fulfill({ status: 503, json })
    })
    await signOut()
    await says('Not now.')
    seen.resolve()
    await isSignedIn()
    await it.page.unroute('**/api/session/passkey')
    await it.page.evaluate(() => localStorage.removeItem('offer'))

    // A copy of the passkey has signed less often than the server has seen.
    await signOut()
    const { credentials } = await devices.send('WebAuthn.getCredentials', { authenticatorId })
    const [credential] = credentials
    const { credentialId } = credential!
    await devices.send('WebAuthn.removeCredential', { authenticatorId, credentialId })
    const copy = { ...credential!, signCount: 0 }
    await devices.send('WebAuthn.addCredential', { authenticatorId, credential: copy })
    await button('Sign in with a passkey').click()
    await says('A copy of this passkey exists')
    await it.picture('sign-in-copied-passkey')
    await enterPassword(account.email)
    await field('Code').fill(codes?.split('\n')[1] ?? '')
    await button('Sign in').click()
    await isSignedIn()
    await go('/account')
    await says('A copy of this passkey was used, so it is no longer accepted.')
    await it.picture('account-copied-passkey')
    await button('Remove').first().click()
    await button('Remove passkey').click()
    await says('Passkey removed.')
    expect(it.problems).toEqual([])
  })

  test('a member without the required second factor is led to one', async () => {
    const organization = await newOrganization(server)
    const account = await newAccount(server)
    await server.sql`
      insert into memberships (organization_id, account_id, role)
      values (${organization.uuid}, ${account.uuid}, 'member')
    `
    await server.sql`
      update organizations set requires_second_factor = true where id = ${organization.uuid}
    `
    await signOut()
    await enterPassword(account.email)
    await isSignedIn()
    await go('/')
    await says('One more step')
    await it.picture('second-factor-required')
    await button('Add a passkey').click()
    await button('Continue').click()
    await until(async () => !(await it.page.getByText('One more step').isVisible()))
    await go('/')
    await it.page.waitForURL(`**/p/${organization.project.id}**`)
    expect(it.problems).toEqual([])
  })

  test('a session without the code is asked for it, and then for the password', async () => {
    const account = await newAccount(server)
    await signOut()
    await enterPassword(account.email)
    await isSignedIn()
    const secret = await insertTotpSecret(server, account)
    await server.sql`
      update sessions set verified_at = now() - interval '1 hour' where account_id = ${account.uuid}
    `
    await go('/account')
    await button('Create recovery codes').click()
    await field('Code').fill('000000')
    await button('Confirm').click()
    await says('The code is wrong or was already used.')
    await it.picture('verify-code')
    await field('Code').fill(toTotpCode(secret))
    await button('Confirm').click()
    await it.page.getByRole('dialog').getByLabel('Password', { exact: true }).fill(PASSWORD)
    await button('Confirm').click()
    await button('I have saved it').click()
    expect(it.problems).toEqual([])
  })
})
