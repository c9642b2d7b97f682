import { setTimeout as sleep } from 'node:timers/promises'
import { startTcpProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'
import { scaled } from '../support/until.ts'

const ANSWER_MS = 25_000
const RECOVERY_MS = scaled(10_000)
const FAULTS = ['cut', 'reset', 'blackHole', 'hangUp', 'delay'] as const

/**
 * Breaks the network between two servers and their Postgres in every way, under load, for
 * `seconds`.
 */
export async function runNetwork({
  seed,
  seconds,
}: {
  seed: number
  seconds: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const proxies: TcpProxy[] = []
  const fleet = await startFleet({
    servers: 2,
    projects: 3,
    async between(databaseUrl) {
      const proxy = await startTcpProxy(databaseUrl)
      proxies.push(proxy)
      return proxy.url
    },
  })
  try {
    const load = fleet.load({ clients: 24, random })
    const problems: string[] = []
    const slowest = new Map<string, number>()
    const endMs = performance.now() + seconds * 1000
    let faults = 0
    while (performance.now() < endMs) {
      await load.successes(50)
      await sleep(random.below(200))
      const fault = FAULTS[faults++ % FAULTS.length]!
      const proxy = random.pick(proxies)
      proxy[fault](20 + random.below(200))
      await sleep(fault === 'blackHole' ? random.below(12_000) : random.below(1_500))
      proxy.heal()
      const healedMs = performance.now()
      const recovered = await Promise.all(fleet.urls().map(url => load.nextSuccess(url)))
      const tookMs = Math.round(Math.max(...recovered) - healedMs)
      slowest.set(fault, Math.max(slowest.get(fault) ?? 0, tookMs))
      if (tookMs > RECOVERY_MS) problems.push(`${fault}: first success after ${tookMs} ms`)
    }
    const verdict = await fleet.check()
    if (load.ledger.slowestMs > ANSWER_MS) problems.push('an answer took too long')
    return {
      figures: {
        faults,
        ...verdict.figures,
        ...Object.fromEntries([...slowest].map(([fault, ms]) => [`after ${fault}: ms`, ms])),
      },
      problems: [...problems, ...verdict.problems],
    }
  } finally {
    await fleet.close()
    await Promise.all(proxies.map(proxy => proxy.close()))
  }
}
