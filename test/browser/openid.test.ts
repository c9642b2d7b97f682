import { describe, expect, test } from 'bun:test'
import { HAS_BROWSER, launch } from '../support/clients/chromium.ts'
import { findFreePort } from '../support/loopback.ts'
import {
  CLIENT_ID,
  CLIENT_SECRET,
  startOpenidProvider,
} from '../support/servers/openid-provider.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { boot } from '../support/servers/server.ts'

describe.skipIf(!HAS_BROWSER)('dashboard.md §2 signing in at a provider', () => {
  test('leads through the pages of the provider to the feed', async () => {
    await using provider = await startOpenidProvider()
    const port = await findFreePort()
    const url = `http://localhost:${port}`
    await using server = await boot(
      {
        port,
        egressAllowCidrs: ['127.0.0.0/8', '::1/128'],
        providers: [
          {
            name: 'company',
            label: 'Analytical Engines',
            issuer: provider.issuer,
            clientId: CLIENT_ID,
            clientSecret: CLIENT_SECRET,
            scopes: 'openid email profile groups',
            groupsClaim: 'groups',
            isTrusted: false,
          },
        ],
      },
      { kinds: [] },
    )
    provider.serve(url, ['company'])
    provider.people.set('grace', {
      name: 'Grace Hopper',
      email: 'grace@people.example',
      email_verified: true,
      groups: ['engineering'],
    })
    const organization = await newOrganization(server)
    await newMember(server, organization, 'owner')
    await server.sql`
      insert into sign_in_rules (organization_id, provider, kind, value, role)
      values (${organization.uuid}, 'company', 'group', 'engineering', 'member')
    `
    await using browser = await launch()
    await using opened = await browser.open()
    const { page } = opened
    const questions: string[] = []
    page.on('dialog', dialog => {
      questions.push(dialog.type())
      void dialog.accept()
    })
    await page.goto(`${url}/sign-in`)
    // A visitor who begins with the other way is not asked whether to leave the page.
    await page.getByLabel('E-mail').fill('grace@people.example')
    await page.getByRole('button', { name: 'Continue with Analytical Engines' }).click()
    await page.waitForURL(`${provider.issuer}/**`)
    expect(questions).toEqual([])
    await page.locator('input[name=login]').fill('grace')
    await page.locator('input[name=password]').fill('anything')
    await page.locator('button[type=submit]').click()
    await page.waitForURL(`${url}/p/${organization.project.id}`)
    await page.goto(`${url}/account`)
    await page.locator('#content').getByText('grace@people.example').waitFor()
    await page.getByText('with OpenID Connect').waitFor()
    await page.getByRole('button', { name: 'Disconnect' }).waitFor()

    await server.sql`update accounts set is_operator = true where email = 'grace@people.example'`
    await page.goto(`${url}/settings/server`)
    const item = page.locator('li', { hasText: 'Analytical Engines' })
    await item.getByText(`${url}/openid/company/callback`).waitFor()
    await item.getByRole('button', { name: 'Check' }).click()
    await item.getByText('The provider responds.').waitFor()
    expect(opened.problems).toEqual([])
  })
})
