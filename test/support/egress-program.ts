// Sends requests of the guarded client to a faulty receiver; prints each outcome as a JSON object.
import { createEgress } from '../../src/http/egress/egress.ts'
import { createAuthority } from './certificates.ts'
import { FAULTS, startReceiver } from './servers/receiver.ts'

const authority = createAuthority()
const certificate = authority.issue(['hook.test'])
const egress = createEgress({
  allowCidrs: ['127.0.0.0/8'],
  ca: authority.ca,
  resolve: async () => [{ address: '127.0.0.1', family: 4 }],
})
/** It may run outside of the tests' modules, on Deno. */
const scaled = (ms: number) => ms * Number(process.env['TIDINGS_TEST_FACTOR'] ?? 1)
/** Faults that end by the deadline alone; a slow machine still has time for headers. */
const DEADLINES: Record<string, number> = {
  hang: 700,
  'slow headers': 700,
  drip: scaled(2_500),
  'drip 500': scaled(2_500),
}
const LONG_MS = scaled(20_000)
const results: Record<string, string[]> = {}

async function tryAll(protocol: 'http' | 'https') {
  await using receiver = await startReceiver(protocol === 'https' ? { certificate } : {})
  const origin = `${protocol}://hook.test:${receiver.port}`
  const send = async (path: string, timeoutMs: number) => {
    const result = await egress.send({ url: `${origin}${path}`, body: '{}', timeoutMs })
    return 'error' in result ? result.error : `${result.status} ${result.body.length > 0}`
  }
  for (const fault of FAULTS) {
    const path = `/${fault.replaceAll(' ', '-')}`
    const timeoutMs = DEADLINES[fault] ?? LONG_MS
    receiver.script(path, fault)
    // Each fault on a new connection, and on a kept one if there is one.
    results[`${protocol} ${fault}`] = [
      await send(path, timeoutMs),
      await send('/', LONG_MS),
      await send(path, timeoutMs),
    ]
  }
}

await Promise.all([tryAll('http'), tryAll('https')])
console.log(JSON.stringify(results))
egress.close()
process.exit(0)
