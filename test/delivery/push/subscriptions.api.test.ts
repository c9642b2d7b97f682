import { expect, test } from 'bun:test'
import { createSession } from '../../../src/access/guard/sessions.ts'
import { parseId, toId } from '../../../src/base/ids.ts'
import {
  createApi,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { newSubscription } from '../../support/worlds/push.ts'
import { createBrowser, newAccount } from '../../support/worlds/browser.ts'
import { boot, withSharedServer } from '../../support/servers/server.ts'

const NIGHT = { days: [5], from: '22:00', to: '07:00', timeZone: 'Europe/Berlin' }
const HOURS = '/api/push/quiet-hours'
const ALL = '/api/push/subscriptions'

const server = withSharedServer()

/** Signs the same account in from another browser. */
async function newBrowser(account: SignedInAccount, userAgent = 'test') {
  const { id, token } = await createSession(server.sql, {
    accountId: account.uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    address: '127.0.0.1',
    userAgent,
  })
  return { sessionId: id, ...createApi(server.url, `tidings=${token}`) }
}

test('delivery: the VAPID key is created on first use, once for all servers, and stored sealed', async () => {
  await using other = await boot({ databaseUrl: server.databaseUrl })
  const account = await newSignedInAccount(server)
  const there = createApi(other.url, account.cookie)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 ? there : account).get('/api/push/key')),
  )
  const keys = new Set(answers.map(({ body }) => JSON.stringify(body.data)))
  expect(keys.size).toBe(1)
  const { id, publicKey } = answers[0]!.body.data
  expect(id).toStartWith('vap_')
  expect(Buffer.from(publicKey, 'base64url')).toHaveLength(65)
  const [row] = await server.sql<{ private_key: string }[]>`select private_key from vapid_keys`
  expect(row!.private_key).toStartWith('v1.')
  const made = await server.sql`select id from audit_log where action = 'push.keyCreated'`
  expect(made.count).toBe(1)
})

test('dashboard §8 signed-in members get the URL that a phone opens', async () => {
  const account = await newSignedInAccount(server)
  const { data } = (await account.get('/api/push/link')).body
  expect(data.url).toBe(`${server.server.url}/notifications`)
  expect(data.qr.path).toMatch(/^(M\d+ \d+h\d+v1h-\d+z)+$/)
  expect((await createApi(server.url).get('/api/push/link')).status).toBe(401)
})

test('dashboard: a page load saves its subscription again, and creates no second one', async () => {
  const account = await newSignedInAccount(server)
  const subscription = { ...newSubscription(), expirationTime: null }
  const first = await account.post(ALL, subscription)
  expect(first.body.data).toMatchObject({
    label: 'A browser',
    host: 'updates.push.services.mozilla.com',
    ...{ isOn: true, isCurrent: true, quietHours: null, mutes: [], letsCriticalThrough: null },
  })
  await account.patch(`${ALL}/${first.body.data.id}`, { isOn: false, label: 'My phone' })
  const again = await Promise.all([
    account.post(ALL, subscription),
    account.post(ALL, subscription),
  ])
  for (const { body } of again) {
    expect(body.data).toEqual({ ...first.body.data, isOn: false, label: 'My phone' })
  }
  expect((await account.get(ALL)).body.data.items).toHaveLength(1)
  const actions = await server.sql<{ action: string }[]>`
    select action from audit_log where account_id = ${account.uuid} order by id
  `
  expect(actions.map(({ action }) => action)).toEqual(['push.subscribed', 'push.edited'])
})

test('dashboard: a browser that subscribes again replaces its subscription and keeps its settings', async () => {
  const account = await newSignedInAccount(server)
  const { id } = (await account.post(ALL, { ...newSubscription(), label: 'Laptop' })).body.data
  const quietHours = [NIGHT]
  await account.patch(`${ALL}/${id}`, { quietHours, letsCriticalThrough: true })
  await server.sql`
    update push_subscriptions set refusals = 3, flagged = 'Refused' where id = ${parseId('psh', id) ?? ''}
  `
  const renewed = await account.post(ALL, newSubscription())
  expect(renewed.body.data).toMatchObject({
    id,
    label: 'Laptop',
    quietHours,
    letsCriticalThrough: true,
    flagged: null,
  })
  expect((await account.get(ALL)).body.data.items).toHaveLength(1)
})

test('dashboard: a browser that signs out, or whose session ends, keeps its settings', async () => {
  const account = await newAccount(server)
  const [browser, other] = [createBrowser(server.url), createBrowser(server.url)]
  for (const one of [browser, other]) await one.signIn(account.email)
  const settings = {
    label: 'Kitchen',
    isOn: false,
    quietHours: [NIGHT],
    mutes: [{ id: 'chn_x', until: null }],
    hasQuietSummary: true,
    letsCriticalThrough: false,
  }
  const { id } = (await browser.post(ALL, newSubscription())).body.data
  await browser.request(`${ALL}/${id}`, { method: 'PATCH', json: settings })
  const endings = [
    () => browser.delete('/api/session'),
    () => server.sql`delete from sessions where account_id = ${account.uuid}`,
    // The next sign-in ends the session of the browser.
    () => undefined,
  ]
  for (const end of endings) {
    await end()
    await browser.signIn(account.email)
    expect((await browser.post(ALL, newSubscription())).body.data).toMatchObject(settings)
  }
  await other.signIn(account.email)
  expect((await other.post(ALL, newSubscription())).body.data).toMatchObject({ isOn: true })
})

test('dashboard: members list their own devices alone, newest first, page by page', async () => {
  const account = await newSignedInAccount(server)
  const ids = [(await account.post(ALL, newSubscription())).body.data.id]
  for (let n = 0; n < 2; n++) {
    const browser = await newBrowser(account)
    ids.push((await browser.post(ALL, newSubscription())).body.data.id)
  }
  await (await newSignedInAccount(server)).post(ALL, newSubscription())
  const first = (await account.get(`${ALL}?limit=2`)).body.data
  const second = (await account.get(`${ALL}?limit=2&cursor=${first.nextCursor}`)).body.data
  const listed = [...first.items, ...second.items]
  expect(listed.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  expect(listed.map(({ isCurrent }: { isCurrent: boolean }) => isCurrent)).toEqual([
    false,
    false,
    true,
  ])
  expect(second.nextCursor).toBeNull()
})

test.each([
  [
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36',
    'Chrome on Android',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) Version/18.4 Mobile Safari/604.1',
    'Safari on iPhone',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  ['Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0', 'Edge on Windows'],
  ['<script>alert(1)</script>', 'A browser'],
])('dashboard: a device is named after its browser: %p is %p', async (userAgent, label) => {
  const account = await newSignedInAccount(server)
  const { body } = await account.request(ALL, {
    method: 'POST',
    json: newSubscription(),
    headers: { 'user-agent': userAgent },
  })
  expect(body.data.label).toBe(label)
})

test('the endpoint of a shared browser moves to the newly signed-in account, without the settings', async () => {
  const [ada, bob] = [await newSignedInAccount(server), await newSignedInAccount(server)]
  const subscription = newSubscription()
  const { id } = (await ada.post(ALL, { ...subscription, label: 'Ada’s' })).body.data
  const moved = await bob.post(ALL, subscription)
  expect(moved.status).toBe(200)
  expect(moved.body.data.id).not.toBe(id)
  expect(moved.body.data.label).toBe('A browser')
  expect((await ada.get(ALL)).body.data.items).toEqual([])
  // The account gets its device back in a new session.
  const again = await newBrowser(bob)
  expect((await again.post(ALL, subscription)).body.data.id).toBe(moved.body.data.id)
})

test('an endpoint without its keys does not take a subscription over', async () => {
  const [ada, eve] = [await newSignedInAccount(server), await newSignedInAccount(server)]
  const subscription = newSubscription()
  await ada.post(ALL, subscription)
  const { keys } = newSubscription()
  for (const stolen of [keys, { ...subscription.keys, auth: keys.auth }]) {
    const taken = await eve.post(ALL, { endpoint: subscription.endpoint, keys: stolen })
    expect([taken.status, taken.body.code]).toEqual([409, 'conflict'])
  }
  expect((await ada.get(ALL)).body.data.items).toHaveLength(1)
  expect((await eve.get(ALL)).body.data.items).toEqual([])
})

test("case 20: another member's device is 404 in every route, and stays unchanged", async () => {
  const [ada, eve] = [await newSignedInAccount(server), await newSignedInAccount(server)]
  const { id } = (await ada.post(ALL, newSubscription())).body.data
  for (const answer of [
    await eve.patch(`${ALL}/${id}`, { isOn: false }),
    await eve.delete(`${ALL}/${id}`),
    await eve.post('/api/push/test', { subscriptionId: id }),
    await eve.post('/api/push/test', {}),
    await eve.post('/api/push/test', { subscriptionId: 'psh_x' }),
  ]) {
    expect([answer.status, answer.body.code]).toEqual([404, 'not_found'])
  }
  expect((await ada.get(ALL)).body.data.items).toMatchObject([{ id, isOn: true }])
})

test('reliability §11 endpoint and keys are stored sealed, and appear in no answer and no audit entry', async () => {
  const account = await newSignedInAccount(server)
  const { endpoint, keys } = newSubscription()
  const { id } = (await account.post(ALL, { endpoint, keys })).body.data
  const secrets = [new URL(endpoint).pathname, keys.p256dh, keys.auth]
  const rows = await server.sql`select to_json(d)::text as text from push_subscriptions d`
  const entries = await server.sql`select to_json(a)::text as text from audit_log a`
  const listed = await account.get(ALL)
  await account.delete(`${ALL}/${id}`)
  for (const secret of secrets) {
    for (const text of [...[...rows, ...entries].map(row => row['text']), listed.text]) {
      expect([secret, String(text).includes(secret)]).toEqual([secret, false])
    }
  }
})

test('dashboard: ending a session deletes its subscription, and removing a device ends no session', async () => {
  const account = await newSignedInAccount(server)
  const browser = await newBrowser(account)
  const { id } = (await account.post(ALL, newSubscription())).body.data
  await browser.post(ALL, newSubscription())
  expect((await account.delete(`/api/sessions/${toId('ses', browser.sessionId)}`)).status).toBe(200)
  expect((await account.get(ALL)).body.data.items).toMatchObject([{ id }])
  expect((await account.delete(`${ALL}/${id}`)).body.data).toEqual({ id })
  expect((await account.delete(`${ALL}/${id}`)).status).toBe(404)
  expect((await account.get('/api/me')).status).toBe(200)
})

test.each([
  [{ label: '' }, ['label']],
  [{ label: 'x'.repeat(61) }, ['label']],
  [{ label: 'a\u0000b' }, ['label']],
  [{ isOn: 'yes' }, ['isOn']],
  [{ hasQuietSummary: 'yes' }, ['hasQuietSummary']],
  [{ quietHours: {} }, ['quietHours']],
  [{ quietHours: [{ ...NIGHT, days: [] }] }, ['quietHours', '0', 'days']],
  [{ quietHours: [{ ...NIGHT, days: [8] }] }, ['quietHours', '0', 'days', '0']],
  [{ quietHours: [NIGHT, { ...NIGHT, from: '24:00' }] }, ['quietHours', '1', 'from']],
  [{ quietHours: [{ ...NIGHT, to: '7:00' }] }, ['quietHours', '0', 'to']],
  [{ quietHours: [{ ...NIGHT, timeZone: 'Mars/Olympus' }] }, ['quietHours', '0', 'timeZone']],
  [{ quietHours: [{ ...NIGHT, timeZone: '+02:00' }] }, ['quietHours', '0', 'timeZone']],
  [{ quietHours: [{ ...NIGHT, timeZone: 'A'.repeat(10_000) }] }, ['quietHours', '0', 'timeZone']],
])('dashboard: invalid settings of a device are refused (%#)', async (edit, path) => {
  const account = await newSignedInAccount(server)
  const { id } = (await account.post(ALL, newSubscription())).body.data
  const { status, body } = await account.patch(`${ALL}/${id}`, edit)
  expect([status, body.details[0].path]).toEqual([400, path])
})

test('dashboard: addresses of other services and keys of no curve are refused, and padding is not', async () => {
  const account = await newSignedInAccount(server)
  const { endpoint, keys } = newSubscription()
  const padded = { p256dh: `${keys.p256dh}=`, auth: `${keys.auth}==` }
  const { id } = (await account.post(ALL, { endpoint, keys: padded })).body.data
  expect((await account.post(ALL, { endpoint, keys })).body.data.id).toBe(id)
  for (const [more, path] of [
    [{ endpoint: 'https://evil.test/x' }, ['endpoint']],
    [{ keys: { ...keys, p256dh: 'A'.repeat(87) } }, ['keys', 'p256dh']],
  ] as const) {
    const { status, body } = await account.post(ALL, { endpoint, keys, ...more })
    expect([status, body.details[0].path]).toEqual([400, path])
  }
})

test('attention §3 quiet hours of the account apply to the devices without their own', async () => {
  const account = await newSignedInAccount(server)
  const { id } = (await account.post(ALL, newSubscription())).body.data
  const read = async () => (await account.get(ALL)).body.data.items[0]
  const rows = [{ ...NIGHT, days: [7, 1, 7], extra: true }]
  const saved = await account.put(HOURS, { quietHours: rows })
  expect(saved.body.data).toEqual({ quietHours: [{ ...NIGHT, days: [1, 7] }] })
  expect((await account.get(HOURS)).body.data).toEqual(saved.body.data)
  expect(await read()).toMatchObject({ ...saved.body.data, ownQuietHours: false })
  // A device can also have none, whatever the account has.
  for (const quietHours of [[NIGHT], []]) {
    await account.patch(`${ALL}/${id}`, { quietHours })
    expect(await read()).toMatchObject({ quietHours, ownQuietHours: true })
  }
  await account.patch(`${ALL}/${id}`, { quietHours: null })
  expect(await read()).toMatchObject({ ...saved.body.data, ownQuietHours: false })
  expect((await account.put(HOURS, { quietHours: [] })).body.data).toEqual({ quietHours: [] })
  expect(await read()).toMatchObject({ quietHours: null, ownQuietHours: false })
  const many = Array.from({ length: 15 }, () => NIGHT)
  expect((await account.put(HOURS, { quietHours: many })).status).toBe(400)
  expect((await account.put(HOURS, { quietHours: many.slice(1) })).status).toBe(200)
})

test('a daily window that 0.3.0 reads and writes is one row, and other rows are no window', async () => {
  const account = await newSignedInAccount(server)
  const { id } = (await account.post(ALL, newSubscription())).body.data
  const uuid = parseId('psh', id) ?? ''
  const daily = { ...NIGHT, days: [1, 2, 3, 4, 5, 6, 7] }
  const readWindow = async () => {
    const [row] = await server.sql`
      select quiet_from as "from", quiet_to as "to", quiet_zone as zone from push_subscriptions where id = ${uuid}
    `
    return { ...row }
  }
  const write = (from: number | null, to: number | null, zone: string | null) => server.sql`
    update push_subscriptions set quiet_from = ${from}, quiet_to = ${to}, quiet_zone = ${zone} where id = ${uuid}
  `
  const read = async () => (await account.get(ALL)).body.data.items[0].quietHours
  await write(22 * 60, 7 * 60, 'Europe/Berlin')
  expect(await read()).toEqual([daily])
  await account.patch(`${ALL}/${id}`, { quietHours: [NIGHT] })
  expect(await readWindow()).toEqual({ from: null, to: null, zone: null })
  // 0.3.0 writes the window with each change of a device.
  await write(null, null, null)
  expect(await read()).toEqual([NIGHT])
  await account.patch(`${ALL}/${id}`, { quietHours: [{ ...daily, from: '23:30' }] })
  expect(await readWindow()).toEqual({ from: 1_410, to: 420, zone: 'Europe/Berlin' })
  await write(null, null, null)
  expect(await read()).toBeNull()
})
