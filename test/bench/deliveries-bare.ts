// The minimal senders, as `bench webhooks` and `bench push` measure them: `deliveries-bare.ts
// webhooks | push <address of the receiver>`.
import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { Webhook } from 'standardwebhooks'
import webPush from 'web-push'
import { CONCURRENCY, runSender, sendAll } from './sender.ts'

const [, , what = '', address = ''] = process.argv
const options = { keepAlive: true, maxSockets: CONCURRENCY }
const agent = new Agent(options)
const webhook = new Webhook(`whsec_${randomBytes(32).toString('base64')}`)
const event = {
  id: 'evt_01kahwq7f4e8xbv0a3n9m2c6rt',
  channelId: 'chn_01kahwq7f4e8xbv0a3n9m2c6rs',
  channelName: 'test',
  title: 'New payment',
  description: null,
  icon: null,
  tags: [],
  metadata: {},
  userId: null,
  source: 'test',
  notify: true,
  timestamp: new Date().toISOString(),
  createdAt: new Date().toISOString(),
  project: { id: 'prj_01kahwq7f4e8xbv0a3n9m2c6rv', name: 'Test project' },
  organization: { id: 'org_01kahwq7f4e8xbv0a3n9m2c6rw', name: 'Test organization' },
}

const send = what === 'push' ? createPush() : post
await runSender(async count => () => sendAll(count, send))

function post(seq: number): Promise<void> {
  const id = `msg_01kahwq7f4e8xbv0a3n9m2c6rt_${seq}`
  const at = new Date()
  const { timestamp } = event
  const body = JSON.stringify({ type: 'event.created', timestamp, data: { ...event, seq } })
  return new Promise((resolve, reject) => {
    const sent = request(address, {
      agent,
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        'webhook-id': id,
        'webhook-timestamp': Math.floor(at.getTime() / 1000),
        'webhook-signature': webhook.sign(id, at, body),
      },
    })
    sent.on('error', reject)
    sent.on('response', response => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`The receiver answered ${response.statusCode}`))
      })
    })
    sent.end(body)
  })
}

function createPush() {
  const { ca, browsers } = JSON.parse(address)
  const tlsAgent = new TlsAgent({ ...options, ca })
  const vapidDetails = { subject: 'mailto:ops@example.com', ...webPush.generateVAPIDKeys() }
  let sent = 0
  return async (nth: number): Promise<void> => {
    const tag = createHash('sha256').update(`event ${sent++}`).digest('hex').slice(0, 32)
    const notification = {
      title: 'New payment',
      navigate: 'https://tidings.example.com/e/evt_01kahwq7f4e8xbv0a3n9m2c6rt',
      tag,
      body: 'Test · Test project',
    }
    const payload = JSON.stringify({ web_push: 8030, notification })
    await webPush.sendNotification(browsers[nth % browsers.length], payload, {
      vapidDetails,
      agent: tlsAgent,
      TTL: 86_400,
      urgency: 'high',
      topic: tag,
      contentEncoding: 'aes128gcm',
    })
  }
}
