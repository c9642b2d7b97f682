// web-push and nothing else, as `bench push` measures it: `push-bare.ts <push service as JSON>`.
import { createHash } from 'node:crypto'
import { Agent } from 'node:https'
import webPush from 'web-push'
import { CONCURRENCY, runSender, sendAll } from './sender.ts'

const { ca, browsers } = JSON.parse(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY, ca })
const vapidDetails = { subject: 'mailto:ops@example.com', ...webPush.generateVAPIDKeys() }
let sent = 0

await runSender(async count => () => sendAll(count, push))

async function push(nth: number): Promise<void> {
  const tag = createHash('sha256').update(`event ${sent++}`).digest('hex').slice(0, 32)
  const payload = JSON.stringify({
    web_push: 8030,
    notification: {
      title: 'New payment',
      navigate: 'https://tidings.example.com/e/evt_01kahwq7f4e8xbv0a3n9m2c6rt',
      tag,
      body: 'Test · Test project',
    },
  })
  await webPush.sendNotification(browsers[nth % browsers.length], payload, {
    vapidDetails,
    agent,
    TTL: 86_400,
    urgency: 'high',
    topic: tag,
    contentEncoding: 'aes128gcm',
  })
}
