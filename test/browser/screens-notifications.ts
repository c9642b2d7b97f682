import type { FakeApi } from '../support/fakes/api.ts'
import { fakePush, LAPTOP, PHONE, PUSH_KEY, TABLET } from '../support/fakes/push.ts'
import type { FakeBrowser } from '../support/fakes/push.ts'
import type { Screen } from './screens.ts'

const path = '/notifications'
const on: FakeBrowser = { permission: 'granted', subscribedFor: PUSH_KEY }
/** Returns the screen for a state of the browser and of the server. */
const as = (
  fake: FakeBrowser,
  prepare: (api: FakeApi) => void,
): Pick<Screen, 'path' | 'prepare' | 'fake'> => ({ path, prepare, fake })

export const NOTIFICATION_SCREENS: Screen[] = [
  {
    name: 'notifications-on',
    ...as(on, api => fakePush(api, [LAPTOP, PHONE, TABLET])),
    until: 'text=On in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Change' }).click()
      await page.getByRole('button', { name: 'Send a test' }).first().click()
      await page.getByText('after 84ms').waitFor()
    },
  },
  {
    name: 'notifications-test-refused',
    ...as(on, api => {
      fakePush(api, [LAPTOP])
      api.on('POST /api/push/test', () => ({
        data: {
          subscriptionId: LAPTOP.id,
          isAccepted: false,
          status: 410,
          body: `<h1>Gone</h1> ${'permanently'.repeat(40)}`,
          reason: 'The push service answered 410: the subscription is gone',
          latencyMs: 61,
          isRemoved: true,
        },
      }))
    }),
    until: 'text=On in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Send a test' }).click()
      await page.getByRole('button', { name: 'Subscribe again' }).waitFor()
    },
  },
  {
    name: 'notifications-remove',
    ...as(on, api => fakePush(api, [LAPTOP, TABLET])),
    until: 'text=On in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Remove', exact: true }).last().click()
      await page.getByRole('dialog').waitFor()
    },
  },
  {
    name: 'notifications-off-refused',
    ...as({ says: 'granted', refusal: 'Registration failed - push service error' }, api =>
      fakePush(api, []),
    ),
    until: 'text=Off in this browser',
    act: async page => {
      await page.getByRole('button', { name: 'Turn on' }).click()
      await page.getByText('could not subscribe').waitFor()
    },
  },
  {
    name: 'notifications-blocked',
    ...as({ permission: 'denied' }, api => fakePush(api, [PHONE])),
    until: 'text=blocks notifications',
  },
  {
    name: 'notifications-insecure',
    ...as({ isSecure: false }, api => fakePush(api, [], 'http://192.168.1.10:3000')),
    until: 'text=HTTPS required',
  },
  {
    name: 'notifications-ios',
    ...as(
      {
        canPush: false,
        userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15',
      },
      api => fakePush(api, []),
    ),
    until: 'text=Add to Home Screen',
  },
]
