// Our complete push delivery, as `bench push` measures it: `push-ours.ts <database url> <push
// service as JSON>`.
import { toSite } from '../../src/http/site.ts'
import { parseId } from '../../src/base/ids.ts'
import { createPushKind } from '../../src/delivery/push/sender.ts'
import { createPushClient } from '../../src/delivery/push/encrypt-and-send.ts'
import type { TestBrowser } from '../support/servers/push-service.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { newMember, newOrganization, newSession } from '../support/worlds/signed-in-account.ts'
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
const { sql } = world
const parts = { ...world, pushHosts: [host], vapidSubject: 'mailto:ops@example.com' }
const site = toSite('https://tidings.example.com')
const kind = createPushKind({ ...parts, pushClient: createPushClient(parts), site })
const organization = await newOrganization({ sql })
const account = await newMember({ sql, url: '' }, organization, 'admin')
const deviceIds: string[] = []
for (const browser of browsers) {
  // A session has one subscription.
  const session = await newSession({ sql, url: '' }, account)
  deviceIds.push(parseId('psh', await insertSubscription({ sql }, session, browser)) ?? '')
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
