// Our complete push delivery, as `bench push` measures it: `push-ours.ts <database url> <push
// service as JSON>`.
import { createHash } from 'node:crypto'
import { createSession } from '../../src/access/guard/sessions.ts'
import { toSite } from '../../src/http/site.ts'
import { newId } from '../../src/base/ids.ts'
import { createPushKind } from '../../src/delivery/push/sender.ts'
import { createPushClient } from '../../src/delivery/push/encrypt-and-send.ts'
import { sealAddress } from '../../src/delivery/push/address.ts'
import type { TestBrowser } from '../support/servers/push-service.ts'
import { newMember, newOrganization } from '../support/worlds/signed-in-account.ts'
import { openOutbox } from './outbox-world.ts'
import { openPostgresClock } from './processor-time.ts'
import { runSender } from './sender.ts'

const [, , databaseUrl = '', json = ''] = process.argv
const { host, ca, browsers } = JSON.parse(json) as {
  host: string
  ca: string
  browsers: TestBrowser[]
}
const world = openOutbox(databaseUrl, ca)
const { sql, secrets } = world
const parts = { ...world, pushHosts: [host], vapidSubject: 'mailto:ops@example.com' }
const site = toSite('https://tidings.example.com')
const kind = createPushKind({ ...parts, pushClient: createPushClient(parts), site })
const organization = await newOrganization({ sql })
const account = await newMember({ sql, url: '' }, organization, 'admin')
const deviceIds: string[] = []
for (const { endpoint, keys } of browsers) {
  const { uuid } = newId('psh')
  const session = await createSession(sql, {
    accountId: account.uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    address: '127.0.0.1',
    userAgent: 'bench',
  })
  await sql`
    insert into push_subscriptions (id, account_id, session_id, endpoint_hash, address, host, label)
    values (
      ${uuid}, ${account.uuid}, ${session.id},
      decode(${createHash('sha256').update(endpoint).digest('hex')}, 'hex'),
      ${sealAddress(secrets, uuid, { endpoint, ...keys })}, ${host}, 'A browser'
    )
  `
  deviceIds.push(uuid)
}

// Bypasses the dispatcher, which would collapse the burst into a count.
await runSender(
  async count => {
    const events = count / deviceIds.length
    const projectId = organization.project.uuid
    await world.enqueue('push', { projectId, targetIds: deviceIds, events })
    return () => world.deliver(kind)
  },
  await openPostgresClock(sql),
)
