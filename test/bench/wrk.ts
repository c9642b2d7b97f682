import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Load {
  url: string
  /** With which it says who it is. */
  headers: Record<string, string>
  connections: number
  seconds: number
  /** The share of requests that carry an Idempotency-Key of their own. */
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

// Every request differs in channel, user and amount; the same requests go to every candidate.
const SCRIPT = `
local keyed, run = tonumber(os.getenv('BENCH_KEYED')), os.getenv('BENCH_RUN')
local function headers()
  local all = { ['Content-Type'] = 'application/json' }
  for name, value in os.getenv('BENCH_HEADERS'):gmatch('([^\\n:]+): ([^\\n]+)') do all[name] = value end
  return all
end
local plain, once = headers(), headers()
local n, bodies = 0, {}
for i = 1, 997 do
  bodies[i] = '{"channelName":"channel ' .. (i % 20) .. '","title":"New payment ' .. i ..
    '","description":"A customer paid for a plan","icon":"💰","tags":["billing","plan"],"userId":"user_' ..
    (i % 100) .. '","metadata":{"amount":' .. i .. ',"plan":"pro","currency":"EUR"}}'
end
request = function()
  n = n + 1
  if (n % 100) >= keyed * 100 then return wrk.format('POST', nil, plain, bodies[n % 997 + 1]) end
  once['Idempotency-Key'] = run .. '-' .. n
  return wrk.format('POST', nil, once, bodies[n % 997 + 1])
end
done = function(summary, latency)
  local e = summary.errors
  print(string.format('RESULT {"requests":%d,"micros":%d,"p50":%f,"p99":%f,"failed":%d,"refused":%d}', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99),
    e.status + e.connect + e.read + e.write + e.timeout, e.status))
end
`

/** Loads a server from a process of its own (wrk), and measures what comes back. */
export async function load({ url, headers, connections, seconds, keyed }: Load): Promise<Measured> {
  const script = join(mkdtempSync(join(tmpdir(), 'bench-')), 'load.lua')
  writeFileSync(script, SCRIPT)
  const child = spawn('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url], {
    env: {
      ...process.env,
      BENCH_HEADERS: Object.entries(headers)
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
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
