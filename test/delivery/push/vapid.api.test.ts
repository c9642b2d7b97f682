import { expect, test } from 'bun:test'
import { rotateSecrets } from '../../../src/database/secrets/rotation.ts'
import { SEALED_TABLES } from '../../../src/server/backup/rows.ts'
import { createApi, newSignedInAccount } from '../../support/worlds/signed-in-account.ts'
import { openPushWorld } from '../../support/worlds/push.ts'
import { APP_SECRET } from '../../support/secret.ts'

test('delivery: without VAPID_SUBJECT the contact is an operator with a reachable e-mail', async () => {
  await using world = await openPushWorld({ vapidSubject: undefined })
  const operator = await newSignedInAccount(world.server, { isOperator: true })
  const { sql } = world.server
  await sql`update accounts set email = 'ops@localhost' where id = ${operator.uuid}`
  const browser = await world.subscribe(operator)
  expect((await operator.post('/api/push/test', {})).body.data).toMatchObject({
    isAccepted: false,
    status: null,
    reason: expect.stringContaining('Set VAPID_SUBJECT'),
  })
  expect(world.service.of(browser)).toEqual([])

  await sql`update accounts set email = 'ops@example.com' where id = ${operator.uuid}`
  await sql`update push_subscriptions set tested_at = null`
  expect((await operator.post('/api/push/test', {})).body.data.isAccepted).toBe(true)
  const [push] = world.service.of(browser)
  expect(push?.claims.sub).toBe('mailto:ops@example.com')
})

test('reliability §11 the key and endpoints are sealed again with a new APP_SECRET, and still work', async () => {
  await using world = await openPushWorld({ vapidSubject: undefined })
  const account = await newSignedInAccount(world.server)
  const browser = await world.subscribe(account)
  const { body } = await account.get('/api/push/key')
  const fresh = Buffer.alloc(32, 'fresh')
  const source = { appSecret: fresh, oldAppSecrets: [APP_SECRET], dataDir: '' }
  const { sql, databaseUrl } = world.server
  const { resealed } = await rotateSecrets(sql, source, SEALED_TABLES)
  // The VAPID key, the endpoint and the erasure key.
  expect(resealed).toBe(3)
  await using other = await openPushWorld({
    databaseUrl,
    appSecret: fresh,
    vapidSubject: 'mailto:ops@example.com',
    pushHosts: [world.service.host],
  })
  const there = createApi(other.server.url, account.cookie)
  // This server does not trust the certificate: reaching TLS shows that everything was unsealed.
  expect((await there.post('/api/push/test', {})).body.data.reason).toContain('TLS handshake')
  expect((await there.get('/api/push/key')).body.data).toEqual(body.data)
  expect(world.service.of(browser)).toEqual([])
})
