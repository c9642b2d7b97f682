// Sends a request to the URL in its argument; prints the status, or why there was none.
import { createEgress } from '../../src/http/egress/egress.ts'

const egress = createEgress({
  allowCidrs: ['127.0.0.0/8'],
  resolve: async () => [{ address: '127.0.0.1', family: 4 }],
})
const result = await egress.send({ url: process.argv[2] ?? '', timeoutMs: 60_000 })
console.log('error' in result ? result.error : result.status)
process.exit(0)
