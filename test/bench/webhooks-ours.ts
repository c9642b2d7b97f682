// Our complete webhook delivery, as `bench webhooks` measures it: `webhooks-ours.ts <database url>
// <url of the receiver>`.
import { newId } from '../../src/base/ids.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { insertReceivingWebhook } from '../faults/webhook-receiver.ts'
import { newProject } from '../support/worlds/project.ts'
import { openOutbox } from './outbox-world.ts'
import { openPostgresClock } from './processor-time.ts'
import { runSender } from './sender.ts'

const WEBHOOKS = 4

const [, , databaseUrl = '', url = ''] = process.argv
const world = openOutbox(databaseUrl)
const { sql, secrets } = world
const kind = createWebhookKind(world)
const { id: projectId } = await newProject({ sql, url: '' })
const webhookIds: string[] = []
while (webhookIds.length < WEBHOOKS) {
  const { uuid } = newId('whk')
  const secret = newSigningSecret()
  await insertReceivingWebhook(sql, secrets, { projectId, uuid, url, secret })
  webhookIds.push(uuid)
}

await runSender(
  async count => {
    await world.enqueue('webhook', { projectId, targetIds: webhookIds, events: count / WEBHOOKS })
    return () => world.deliver(kind)
  },
  await openPostgresClock(sql),
)
