// Our complete delivery, as `bench webhooks` and `bench push` measure it: `deliveries-ours.ts
// webhooks | push <address of the receiver> <database url>`.
import { setTimeout as sleep } from 'node:timers/promises'
import { newId, parseId } from '../../src/base/ids.ts'
import { toArray } from '../../src/database/arrays.ts'
import { createPool } from '../../src/database/pool.ts'
import { WORKER_SETTINGS } from '../../src/database/session.ts'
import { connect } from '../../src/database/sql.ts'
import type { DeliveryKind } from '../../src/delivery/outbox/delivery-kind.ts'
import { startDeliveryWorker } from '../../src/delivery/outbox/worker.ts'
import { createPushClient } from '../../src/delivery/push/encrypt-and-send.ts'
import { createPushKind } from '../../src/delivery/push/sender.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { createEgress } from '../../src/http/egress/egress.ts'
import { toSite } from '../../src/http/site.ts'
import { insertReceivingWebhook } from '../faults/webhook-receiver.ts'
import { testSecrets } from '../support/secret.ts'
import type { TestBrowser } from '../support/servers/push-service.ts'
import { appendEvents } from '../support/worlds/deliveries.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import { newMember, newOrganization, newSession } from '../support/worlds/signed-in-account.ts'
import { openPostgresClock } from './processor-time.ts'
import { runSender } from './sender.ts'

const WEBHOOKS = 4

const [, , what = '', address = '', databaseUrl = ''] = process.argv
const service = what === 'webhooks' ? undefined : (JSON.parse(address) as PushAddress)
const sql = connect(databaseUrl, { name: 'bench', max: 2, settings: { statement_timeout: 0 } })
const open = (name: string) => createPool(databaseUrl, { name, max: 4, settings: WORKER_SETTINGS })
const world = {
  sql,
  pool: open('deliver'),
  secrets: testSecrets(),
  egress: createEgress({ allowCidrs: ['127.0.0.0/8'], ca: service?.ca }),
}
const worker = open('worker')
const organization = await newOrganization({ sql })
const projectId = organization.project.uuid
const kind = service ? createPush(service.host) : createWebhookKind(world)
const targets = service ? await subscribe(service.browsers) : await insertWebhooks()

// Bypasses the dispatcher, which would collapse a burst of pushes into a count.
await runSender(
  async count => {
    const eventIds = await appendEvents(sql, projectId, count / targets.length)
    await sql`
      insert into outbox (project_id, event_id, kind, target_id)
      select ${projectId}, e.id, ${kind.name}, t.id
      from unnest(${toArray(eventIds)}::uuid[]) as e (id)
        cross join unnest(${toArray(targets)}::uuid[]) as t (id)
    `
    return async () => {
      const running = startDeliveryWorker({ pool: worker, kind })
      while ((await sql`select from outbox limit 1`).count > 0) await sleep(25)
      await running.stop(0)
    }
  },
  await openPostgresClock(sql),
)

interface PushAddress {
  host: string
  ca: string
  browsers: [TestBrowser, ...TestBrowser[]]
}

async function insertWebhooks(): Promise<string[]> {
  const ids = Array.from({ length: WEBHOOKS }, () => newId('whk').uuid)
  for (const uuid of ids) {
    const secret = newSigningSecret()
    await insertReceivingWebhook(sql, world.secrets, { projectId, uuid, url: address, secret })
  }
  return ids
}

function createPush(host: string): DeliveryKind {
  const parts = { ...world, pushHosts: [host], vapidSubject: 'mailto:ops@example.com' }
  const site = toSite('https://tidings.example.com')
  return createPushKind({ ...parts, pushClient: createPushClient(parts), site })
}

async function subscribe(browsers: readonly TestBrowser[]): Promise<string[]> {
  const account = await newMember({ sql, url: '' }, organization, 'admin')
  const ids: string[] = []
  for (const browser of browsers) {
    // A session has one subscription.
    const session = await newSession({ sql, url: '' }, account)
    ids.push(parseId('psh', await insertSubscription({ sql }, session, browser)) ?? '')
  }
  return ids
}
