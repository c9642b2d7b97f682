// Our complete webhook delivery, as `bench webhooks` measures it: `webhooks-ours.ts <database url>
// <url of the receiver>`.
import { newId } from '../../src/base/ids.ts'
import { createWebhookKind } from '../../src/delivery/webhooks/sender.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { toSealedCell } from '../../src/delivery/webhooks/sealing.ts'
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
  await sql`
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    values (
      ${projectId}, ${uuid}, 'Bench', ${secrets.seal(url, toSealedCell('url', uuid))}, ${new URL(url).host}, 'standard',
      true, ${secrets.seal(newSigningSecret(), toSealedCell('secret', uuid))}
    )
  `
  webhookIds.push(uuid)
}

await runSender(
  async count => {
    await world.enqueue('webhook', { projectId, targetIds: webhookIds, events: count / WEBHOOKS })
    return () => world.deliver(kind)
  },
  await openPostgresClock(sql),
)
