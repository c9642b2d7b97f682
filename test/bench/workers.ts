import { once } from 'node:events'
import { cloneDatabase, closeCluster } from '../support/postgres.ts'
import { measure, print, ratio, verify } from './ingest.ts'
import { makeKey, startTidings, type Candidate } from './server.ts'
import { requireWrk } from './wrk.ts'

/** Durable events over HTTP of one process and of two that share a port, each on a database of its own. */
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
    const crowd = await measure(candidates, 128)
    print('128 connections, 30 % with an Idempotency-Key', crowd)
    console.log(`\nof one process         ${ratio(crowd.get('2 workers')!, crowd.get('tidings')!)}`)
    for (const url of urls) await verify(url)
  } finally {
    for (const { child } of candidates) child.kill('SIGTERM')
    await Promise.all(candidates.map(({ child }) => child.exitCode === null && once(child, 'exit')))
    await closeCluster()
  }
}
