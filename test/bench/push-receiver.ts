// The push service of `bench push`, in its own process: it decrypts and checks every push. Prints
// its address and subscriptions; answers each line of input with the pushes since the last line.
import { createInterface } from 'node:readline'
import { startPushService } from '../support/servers/push-service.ts'

const DEVICES = 8

const service = await startPushService()
const browsers = Array.from({ length: DEVICES }, () => service.subscribe())
const { host, ca } = service
console.log(`READY ${JSON.stringify({ host, ca, browsers })}`)
for await (const _line of createInterface({ input: process.stdin })) {
  const topics = new Set(service.arrived.map(({ path, topic }) => `${path} ${topic}`))
  const [problem] = service.problems
  console.log(JSON.stringify({ requests: service.arrived.length, messages: topics.size, problem }))
  service.arrived.length = 0
}
