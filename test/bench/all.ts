import { compareFeed } from './feed.ts'
import { compareIngest } from './ingest.ts'
import { comparePush } from './push.ts'
import { compareQueue } from './queue.ts'
import { compareRead } from './read-plain.ts'
import { printTable, type Line } from './table.ts'
import { compareWebhooks } from './webhooks.ts'

/** What is compared with somebody else's: each makes the databases and processes that it needs, and leaves none of them. */
const SUBJECTS: Record<string, () => Promise<Line[]>> = {
  ingest: compareIngest,
  'live feed': compareFeed,
  reading: compareRead,
  queue: compareQueue,
  webhooks: compareWebhooks,
  push: comparePush,
}

/** One table of everything that is compared. What one subject found stays when another fails; then it throws at the end. */
export async function benchAll(): Promise<void> {
  const lines: Line[] = []
  const failed: unknown[] = []
  for (const [subject, compare] of Object.entries(SUBJECTS)) {
    const startedAt = performance.now()
    try {
      lines.push(...(await compare()))
    } catch (error) {
      failed.push(error)
      console.error(error)
    }
    console.error(`${subject}: ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  }
  printTable(lines)
  if (failed.length > 0) throw new AggregateError(failed, 'Not every subject gave its figures')
}
