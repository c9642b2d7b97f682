import { ACCOUNT, PROJECT, type FakeApi } from '../support/fakes/api.ts'
import { fillKeys, fillWebhooks } from '../support/fakes/webhooks.ts'
import { fillShop } from '../support/fakes/shop.ts'
import type { Screen } from './screens.ts'

const KEYS = `/p/${PROJECT}/settings/keys`
const WEBHOOKS = `/p/${PROJECT}/settings/webhooks`
const WEBHOOK = `${WEBHOOKS}/whk_1`

function prepare(...steps: ((api: FakeApi) => void)[]) {
  return (api: FakeApi) => {
    for (const step of [fillShop, ...steps]) step(api)
  }
}

function viewer(api: FakeApi): void {
  const [organization] = ACCOUNT.organizations
  api.on('GET /api/me', () => ({
    data: { ...ACCOUNT, organizations: [{ ...organization, role: 'viewer' }] },
  }))
}

/** Keys and webhooks, in each of their states. */
export const WEBHOOK_SCREENS: Screen[] = [
  { name: 'keys', path: KEYS, prepare: prepare(fillKeys), until: 'text=Nightly backup' },
  { name: 'keys-viewer', path: KEYS, prepare: prepare(viewer), until: 'text=Ask an admin' },
  {
    name: 'keys-make',
    path: KEYS,
    prepare: prepare(fillKeys),
    until: 'text=Nightly backup',
    act: page => page.getByRole('button', { name: 'Create a key' }).click(),
  },
  {
    name: 'keys-made',
    path: KEYS,
    prepare: prepare(fillKeys),
    until: 'text=Nightly backup',
    act: async page => {
      await page.getByRole('button', { name: 'Create a key' }).click()
      await page.getByLabel('Name', { exact: true }).fill('Mobile app')
      await page.getByRole('button', { name: 'Create key' }).click()
      await page.getByRole('button', { name: 'I have saved it' }).waitFor()
    },
  },
  {
    name: 'keys-requests',
    path: KEYS,
    prepare: prepare(fillKeys),
    until: 'text=Nightly backup',
    act: async page => {
      await page.getByRole('button', { name: 'Requests' }).first().click()
      await page.locator('.bars-tall').waitFor()
    },
  },
  {
    name: 'webhooks',
    path: WEBHOOKS,
    prepare: prepare(fillWebhooks),
    until: 'text=A removed device',
  },
  {
    name: 'webhooks-waiting',
    path: WEBHOOKS,
    prepare: prepare(fillWebhooks),
    until: 'text=A removed device',
    act: async page => {
      await page.getByRole('button', { name: 'Pending' }).click()
      await page.getByText('3 attempts').scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'webhooks-make',
    path: WEBHOOKS,
    prepare: prepare(fillWebhooks),
    until: 'text=A removed device',
    act: async page => {
      await page.getByRole('button', { name: 'Add a webhook' }).click()
      await page.getByLabel('Sends').selectOption('some')
      await page.getByRole('checkbox', { name: 'payments' }).waitFor()
    },
  },
  {
    name: 'webhook-made',
    path: WEBHOOKS,
    prepare: prepare(fillWebhooks),
    until: 'text=A removed device',
    act: async page => {
      await page.getByRole('button', { name: 'Add a webhook' }).click()
      await page.getByLabel('URL').fill('https://orders.shop.example/hooks/tidings')
      await page.getByRole('button', { name: 'Add webhook' }).click()
      await page.getByRole('button', { name: 'I have saved it' }).waitFor()
    },
  },
  { name: 'webhook', path: WEBHOOK, prepare: prepare(fillWebhooks), until: '.attempt' },
  {
    name: 'webhook-attempt',
    path: WEBHOOK,
    prepare: prepare(fillWebhooks),
    until: '.attempt',
    act: async page => {
      await page.locator('.attempt summary').nth(1).click()
      await page.getByLabel('Request').waitFor()
      await page.getByLabel('Request').scrollIntoViewIfNeeded()
    },
  },
  {
    name: 'webhook-test',
    path: WEBHOOK,
    prepare: prepare(fillWebhooks),
    until: '.attempt',
    act: async page => {
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByText('Out of order').first().waitFor()
    },
  },
  {
    name: 'webhook-edit',
    path: WEBHOOK,
    prepare: prepare(fillWebhooks),
    until: '.attempt',
    act: async page => {
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByLabel('URL').waitFor()
    },
  },
  {
    name: 'webhook-recover',
    path: WEBHOOK,
    prepare: prepare(fillWebhooks),
    until: '.attempt',
    act: page => page.getByRole('button', { name: 'Recover missed events' }).click(),
  },
  {
    name: 'webhook-hostile',
    path: `${WEBHOOKS}/whk_4`,
    prepare: prepare(fillWebhooks),
    until: 'text=Queue full since',
  },
  {
    name: 'webhook-disabled',
    path: `${WEBHOOKS}/whk_5`,
    prepare: prepare(fillWebhooks),
    until: '.attempt',
  },
]
