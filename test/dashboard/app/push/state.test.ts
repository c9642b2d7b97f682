import { describe, expect, test } from 'bun:test'
import {
  isIos,
  parseRegistration,
  toSyncAction,
  toPushState,
  type Browser,
} from '../../../../src/dashboard/app/push/state.ts'
import { ensureSubscription } from '../../../../src/dashboard/app/push/subscription.ts'
import { toPath, parsePush } from '../../../../src/dashboard/app/worker/push-message.ts'
import { toPhoneLink } from '../../../../src/delivery/push/subscriptions.ts'
import { OTHER_KEY, PUSH_KEY } from '../../../support/fakes/push.ts'

const ORIGIN = 'https://tidings.example'
const NEW_EVENT = 'There is a new event. Open Tidings to see it.'
const ON: Browser = {
  isSecure: true,
  canPush: true,
  isIos: false,
  isInstalled: false,
  permission: 'granted',
  isSubscribed: true,
}

describe('dashboard §8 the push state of a browser', () => {
  test.each<[string, Partial<Browser>, boolean | undefined]>([
    ['on', {}, true],
    ['on', { isIos: true, isInstalled: true }, true],
    ['off', {}, false],
    ['off', {}, undefined],
    ['off', { isSubscribed: false }, true],
    ['off', { permission: 'default' }, true],
    ['blocked', { permission: 'denied' }, true],
    ['blocked', { permission: 'denied', isSubscribed: false }, undefined],
    ['insecure', { isSecure: false, canPush: false }, undefined],
    ['insecure', { isSecure: false, canPush: false, isIos: true }, undefined],
    ['needs install', { canPush: false, isIos: true }, undefined],
    ['unsupported', { canPush: false, isIos: true, isInstalled: true }, undefined],
    ['unsupported', { canPush: false }, undefined],
  ])('is %s for %j, with %j on the server', (state, browser, isOn) => {
    expect(toPushState({ ...ON, ...browser }, isOn) as string).toBe(state)
  })

  test.each([
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X)', 5, true],
    ['Mozilla/5.0 (iPad; CPU OS 16_4 like Mac OS X)', 5, true],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)', 5, true],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)', 0, false],
    ['Mozilla/5.0 (Linux; Android 15)', 5, false],
  ])('of %s with %j touch points is iOS: %j', (userAgent, touchPoints, expected) => {
    expect(isIos(userAgent, touchPoints)).toBe(expected)
  })
})

describe('delivery: a page load repairs its subscription', () => {
  const told = { account: 'per_1', device: 'psh_1' }
  test.each([
    ['register', 'granted', true, told],
    // Cleared storage; a subscription that the browser has lost.
    ['register', 'granted', true, undefined],
    ['register', 'granted', false, told],
    ['nothing', 'granted', false, undefined],
    ['nothing', 'default', false, told],
    ['nothing', 'denied', true, told],
    // Another account turned push on in this browser, and never signed out.
    ['unsubscribe', 'granted', true, { ...told, account: 'per_2' }],
    ['nothing', 'granted', false, { ...told, account: 'per_2' }],
  ] as const)('%s: %s, subscribed: %j, told: %j', (care, permission, isSubscribed, told) => {
    expect(toSyncAction({ permission, isSubscribed }, told, 'per_1')).toBe(care)
  })

  test('keeps the registered account as two words', () => {
    expect(parseRegistration('per_1 psh_1')).toEqual(told)
    for (const text of [undefined, '', 'per_1']) expect(parseRegistration(text)).toBeUndefined()
  })

  /** A push manager of a browser, which holds one subscription at a time. */
  function newManager(key: string | undefined) {
    const acts: string[] = []
    const toSubscription = (key: string) => ({
      options: { applicationServerKey: new Uint8Array(Buffer.from(key, 'base64url')).buffer },
      unsubscribe: async () => acts.push('unsubscribed'),
    })
    const manager = {
      getSubscription: async () => (key === undefined ? null : toSubscription(key)),
      async subscribe({ applicationServerKey, userVisibleOnly }: PushSubscriptionOptionsInit) {
        acts.push(`subscribed ${userVisibleOnly}`)
        return toSubscription(String(applicationServerKey))
      },
    }
    return { manager: manager as unknown as PushManager, acts }
  }

  test.each([
    [undefined, false, ['subscribed true']],
    [PUSH_KEY, false, []],
    [OTHER_KEY, false, ['unsubscribed', 'subscribed true']],
    [PUSH_KEY, true, ['unsubscribed', 'subscribed true']],
  ])('subscribes for the key %j, dead: %j', async (key, isDead, expected) => {
    const { manager, acts } = newManager(key)
    const { options } = await ensureSubscription(manager, PUSH_KEY, isDead)
    expect(acts).toEqual(expected)
    expect(
      Buffer.from(options.applicationServerKey ?? new ArrayBuffer(0)).toString('base64url'),
    ).toBe(PUSH_KEY)
  })
})

describe('delivery: every push shows a notification', () => {
  const read = (text: string) => parsePush(() => JSON.parse(text), ORIGIN)
  const FALLBACK = {
    title: 'Tidings',
    body: NEW_EVENT,
    tag: '',
    path: '/',
    channel: undefined,
    about: undefined,
    acknowledge: undefined,
    answer: undefined,
    answers: [],
    url: undefined,
    requireInteraction: false,
    seq: NaN,
    close: [],
    appBadge: NaN,
    silent: false,
    renotify: false,
  }

  test('Declarative Web Push is read like by browsers that support it', () => {
    const notification = {
      title: '💰 New payment',
      body: 'from Ada',
      navigate: `${ORIGIN}/e/evt_1`,
      tag: 'a1',
      data: {
        ...{ channel: 'chn_1', about: 'prj_1 7', seq: 7, close: ['b2', 3] },
        answer: '/api/projects/prj_1/events/evt_1/answer',
        answers: [{ id: 'deploy', label: 'Deploy' }],
        acknowledge: 'https://evil.example.com/api/projects/prj_1/events/evt_1/acknowledgement',
      },
      app_badge: '3',
      silent: true,
      renotify: true,
    }
    expect(read(JSON.stringify({ web_push: 8030, notification }))).toEqual({
      title: '💰 New payment',
      body: 'from Ada',
      tag: 'a1',
      path: '/e/evt_1',
      channel: 'chn_1',
      about: 'prj_1 7',
      acknowledge: '/api/projects/prj_1/events/evt_1/acknowledgement',
      answer: '/api/projects/prj_1/events/evt_1/answer',
      answers: [{ id: 'deploy', label: 'Deploy' }],
      url: undefined,
      requireInteraction: false,
      seq: 7,
      close: ['b2'],
      appBadge: 3,
      silent: true,
      renotify: true,
    })
    expect(read('{"notification":{"title":"A"}}')).toEqual({ ...FALLBACK, title: 'A', body: '' })
  })

  test.each([
    ['https://grafana.example.com/d/disk?from=now', 'https://grafana.example.com/d/disk?from=now'],
    ['javascript:alert(1)', undefined],
    ['data:text/html,<p>', undefined],
    ['//', undefined],
  ])('attention §2 a click leads to %s, and the button to the event', (navigate, url) => {
    const actions = [{ action: 'event', title: 'Show event', navigate: `${ORIGIN}/e/evt_1` }]
    const notification = { title: 'A', navigate, actions, requireInteraction: true }
    expect(read(JSON.stringify({ notification }))).toEqual({
      ...FALLBACK,
      ...{ title: 'A', body: '', path: '/e/evt_1', url, requireInteraction: true },
    })
  })

  test.each(['', '{', 'null', '8030', '[]', '{}', '{"notification":null}', '{"notification":"x"}'])(
    'a notification is shown for %j',
    text => expect(read(text)).toEqual(FALLBACK),
  )

  test('fields that are not text are ignored', () => {
    expect(
      read(
        '{"notification":{"title":{"toString":1},"body":[],"tag":7,"navigate":true,"data":7,"actions":[7]}}',
      ),
    ).toEqual(FALLBACK)
    expect(read('{"notification":{"data":{"channel":7}}}')).toEqual(FALLBACK)
    expect(read('{"notification":{"data":null}}')).toEqual(FALLBACK)
    // Browsers show nothing with `renotify` and without a tag.
    expect(read('{"notification":{"data":{"seq":"x"},"renotify":true}}')).toEqual(FALLBACK)
  })

  test('a notification is shown without a payload', () => {
    expect(parsePush(() => undefined, ORIGIN)).toEqual(FALLBACK)
  })

  test.each([
    [`${ORIGIN}/e/evt_1`, '/e/evt_1'],
    [`${ORIGIN}/p/prj_1?channel=chn_1`, '/p/prj_1?channel=chn_1'],
    ['/notifications', '/notifications'],
    // The server has several names, such as localhost and 127.0.0.1.
    ['http://localhost:3000/e/evt_1', '/e/evt_1'],
    [`${ORIGIN}//evil.example/`, '/'],
    ['//evil.example/a', '/a'],
    ['javascript:alert(1)', '/'],
    ['data:text/html,<p>', '/'],
    ['http://', '/'],
  ])('%s leads to %s', (navigate, path) => {
    expect(toPath(navigate, ORIGIN)).toBe(path)
    expect(new URL(toPath(navigate, ORIGIN), ORIGIN).origin).toBe(ORIGIN)
  })
})

test('dashboard §8 a QR code leads to the page, and its path draws each dark module once', () => {
  const { url, qr } = toPhoneLink(ORIGIN)
  expect(url).toBe(`${ORIGIN}/notifications`)
  const dark = new Set<string>()
  for (const [, x, y, length] of qr.path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
    for (let at = Number(x); at < Number(x) + Number(length); at++) dark.add(`${at} ${y}`)
  }
  expect(qr.path.replace(/M\d+ \d+h(\d+)v1h-\1z/g, '')).toBe('')
  // Exactly three finder patterns, each a frame of 7 with a light ring and a dark centre.
  const isEye = (left: number, top: number) =>
    Array.from({ length: 49 }, (_, n) => [n % 7, Math.floor(n / 7)] as const).every(([x, y]) => {
      const ring = Math.max(Math.abs(x - 3), Math.abs(y - 3))
      return dark.has(`${left + x} ${top + y}`) === (ring !== 2)
    })
  const far = qr.size - 7
  expect([isEye(0, 0), isEye(far, 0), isEye(0, far), isEye(far, far)]).toEqual([
    true,
    true,
    true,
    false,
  ])
})
