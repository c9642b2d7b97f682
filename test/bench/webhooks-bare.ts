// The minimal sender of signed webhooks, as `bench webhooks` measures it: `webhooks-bare.ts <url of
// the receiver>`.
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { CONCURRENCY, runSender, sendAll } from './sender.ts'

const [, , url = ''] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY })
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

await runSender(async count => () => sendAll(count, post))

function post(seq: number): Promise<void> {
  const id = `msg_01kahwq7f4e8xbv0a3n9m2c6rt_${seq}`
  const at = new Date()
  const { timestamp } = event
  const body = JSON.stringify({ type: 'event.created', timestamp, data: { ...event, seq } })
  return new Promise((resolve, reject) => {
    const sent = request(url, {
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
