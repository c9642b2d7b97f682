// The receiver of `bench webhooks`: answers 200, and each line of input with the deliveries since
// the last line.
import { createInterface } from 'node:readline'

let ids: string[] = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    await request.arrayBuffer()
    ids.push(request.headers.get('webhook-id') ?? '')
    return new Response('ok')
  },
})
console.log(`READY http://127.0.0.1:${server.port}/hook`)
for await (const _line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify({ requests: ids.length, messages: new Set(ids).size }))
  ids = []
}
