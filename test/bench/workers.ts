import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { createMeasure, KEYED, print, verify } from './ingest.ts'
import { makeKey, startTidings, stopCandidates, type Candidate } from './server.ts'
import { requireWrk } from './wrk.ts'

/**
 * Measures durable events over HTTP of one process and of two that share a port, each on its own
 * database.
 */
export async function benchWorkers(): Promise<void> {
  requireWrk()
  const urls: string[] = []
  const candidates: Candidate[] = []
  try {
    for (const workers of [1, 2]) {
      const url = await cloneDatabase()
      urls.push(url)
      candidates.push(await startTidings(url, await makeKey(url), workers))
    }
    const measure = await createMeasure(urls[0] ?? '')
    const crowd = await measure(candidates, { connections: 128, keyed: KEYED })
    print('128 connections, 30 % with an Idempotency-Key', crowd)
    const { tidings, '2 workers': two } = crowd
    console.log(`\nof one process         ${(two!.perSecond / tidings!.perSecond).toFixed(2)}`)
    for (const url of urls) console.log(`log: ${await verify(url)}`)
  } finally {
    await stopCandidates(candidates)
    await closeCluster()
  }
}
