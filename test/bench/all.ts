import { compareFeed } from './feed.ts'
import { compareIngest } from './ingest.ts'
import { comparePush } from './push.ts'
import { compareQueue } from './queue.ts'
import { compareRead } from './read-plain.ts'
import { printTable, type Line } from './table.ts'
import { compareWebhooks } from './webhooks.ts'

/** The comparisons by subject; each creates its own databases and processes, and removes them. */
const SUBJECTS: Record<string, () => Promise<Line[]>> = {
  ingest: compareIngest,
  'live feed': compareFeed,
  reading: compareRead,
  queue: compareQueue,
  webhooks: compareWebhooks,
  push: comparePush,
}

/**
 * Prints one table of all comparisons. If a subject fails, the others are still printed; then it
 * throws.
 */
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
  if (failed.length > 0) throw new AggregateError(failed, 'Some subjects failed')
}
