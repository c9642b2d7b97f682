// The guarded client against a receiver that misbehaves, as a process: prints a JSON object of what came of each fault.
import { createEgress } from '../../src/egress/egress.ts'
import { createAuthority } from './certificates.ts'
import { FAULTS, startReceiver } from './receiver.ts'

const authority = createAuthority()
const certificate = authority.issue(['hook.test'])
const egress = createEgress({
  allowCidrs: ['127.0.0.0/8'],
  ca: authority.ca,
  resolve: async () => [{ address: '127.0.0.1', family: 4 }],
})
const results: Record<string, string[]> = {}
for (const protocol of ['http', 'https']) {
  await using receiver = await startReceiver(protocol === 'https' ? { certificate } : {})
  const origin = `${protocol}://hook.test:${receiver.port}`
  const send = async (path: string, timeoutMs: number) => {
    const result = await egress.send({ url: `${origin}${path}`, body: '{}', timeoutMs })
    return 'error' in result ? result.error : `${result.status} ${result.body.length > 0}`
  }
  for (const fault of FAULTS) {
    const path = `/${fault.replaceAll(' ', '-')}`
    receiver.script(path, fault)
    // On a new connection, and on one that is kept, where there are such.
    const startMs = performance.now()
    const came = [await send(path, 700), await send('/', 5_000), await send(path, 700)]
    const isLate = performance.now() - startMs > 4_000
    results[`${protocol} ${fault}`] = isLate ? [...came, 'late'] : came
  }
}
console.log(JSON.stringify(results))
egress.close()
process.exit(0)
