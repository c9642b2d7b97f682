// The receiver of `bench webhooks` and `bench push`: `deliveries-receiver.ts webhooks | push`. It
// prints its address, and answers each line of input with the messages since the last line. The
// push service decrypts and checks every push.
import { createInterface } from 'node:readline'
import { startPushService } from '../support/servers/push-service.ts'

const DEVICES = 8

const { address, take } = process.argv[2] === 'push' ? await startPush() : startWebhooks()
console.log(`READY ${address}`)
for await (const _line of createInterface({ input: process.stdin })) {
  const { ids, problem } = take()
  console.log(JSON.stringify({ requests: ids.length, messages: new Set(ids).size, problem }))
}

function startWebhooks() {
  const ids: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.arrayBuffer()
      ids.push(request.headers.get('webhook-id') ?? '')
      return new Response('ok')
    },
  })
  const take = () => ({ ids: ids.splice(0), problem: undefined })
  return { address: `http://127.0.0.1:${server.port}/hook`, take }
}

async function startPush() {
  const { host, ca, arrived, problems, subscribe } = await startPushService()
  const browsers = Array.from({ length: DEVICES }, subscribe)
  const take = () => ({
    ids: arrived.splice(0).map(({ path, topic }) => `${path} ${topic}`),
    problem: problems[0],
  })
  return { address: JSON.stringify({ host, ca, browsers }), take }
}
