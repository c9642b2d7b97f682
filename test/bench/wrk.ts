import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/scratch.ts'

export interface Load {
  url: string
  /** The authentication headers. */
  headers: Record<string, string>
  connections: number
  seconds: number
  /** The share of requests with their own Idempotency-Key. */
  keyed: number
}

export type Measured = {
  perSecond: number
  p50Ms: number
  p99Ms: number
  failed: number
  /** Requests that were answered with success. */
  acknowledged: number
}

// Every request has another channel, user and amount; every candidate gets the same requests.
const SCRIPT = `
local keyed = tonumber(os.getenv('BENCH_KEYED'))
local run = os.getenv('BENCH_RUN')
local plain, once, n, bodies = {}, {}, 0, {}
for _, headers in ipairs({ plain, once }) do
  headers['Content-Type'] = 'application/json'
  headers['Authorization'] = os.getenv('BENCH_AUTHORIZATION')
end
for i = 1, 997 do
  bodies[i] = '","title":"New payment ' .. i ..
    '","description":"A customer paid for a plan","icon":"💰","tags":["billing","plan"],"userId":"user_' ..
    (i % 100) .. '","metadata":{"amount":' .. i .. ',"plan":"pro","currency":"EUR"}}'
end
request = function()
  n = n + 1
  local isKeyed = (n % 100) < keyed * 100
  local headers = isKeyed and once or plain
  if isKeyed then headers['Idempotency-Key'] = run .. '-' .. n end
  return wrk.format('POST', nil, headers,
    '{"channelName":"channel ' .. (n % 20) .. bodies[n % 997 + 1])
end
done = function(summary, latency)
  local e = summary.errors
  print(string.format('RESULT {"requests":%d,"micros":%d,"p50":%f,"p99":%f,"failed":%d,"refused":%d}', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99),
    e.status + e.connect + e.read + e.write + e.timeout, e.status))
end
`

/** Loads a server from a separate process (wrk), and returns the measurements. */
export async function load(job: Load): Promise<Measured> {
  const { url, headers, connections, seconds, keyed } = job
  const folder = makeFolder()
  const script = join(folder, 'load.lua')
  writeFileSync(script, SCRIPT)
  const child = spawn('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url], {
    env: {
      ...process.env,
      BENCH_AUTHORIZATION: headers['Authorization'],
      BENCH_KEYED: String(keyed),
      BENCH_RUN: crypto.randomUUID(),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', chunk => (output += chunk))
  await new Promise(resolve => child.on('close', resolve))
  const line = /RESULT (.*)/.exec(output)?.[1]
  if (!line) throw new Error(`wrk said:\n${output}`)
  const result = JSON.parse(line) as Record<
    'requests' | 'micros' | 'p50' | 'p99' | 'failed' | 'refused',
    number
  >
  return {
    perSecond: (result.requests / result.micros) * 1e6,
    p50Ms: result.p50 / 1000,
    p99Ms: result.p99 / 1000,
    failed: result.failed,
    acknowledged: result.requests - result.refused,
  }
}

export function requireWrk(): void {
  if (spawnSync('wrk', ['-v']).error) {
    throw new Error('This bench needs wrk, a load generator: apt-get install wrk')
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}
