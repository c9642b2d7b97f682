import '../support/scratch.ts'
import { benchFairness } from './fairness.ts'
import { comparePush, compareWebhooks } from './deliveries.ts'
import { compareFeed } from './feed.ts'
import { compareIngest } from './ingest.ts'
import { benchMemory } from './memory.ts'
import { compareQueue } from './queue.ts'
import { compareRead } from './read-plain.ts'
import { printTable, type Line } from './table.ts'

// `bun run bench <name>` prints ratios to named references, measured in the same run.
const benches: Record<string, () => Promise<void>> = {
  all: benchAll,
  fairness: benchFairness,
  feed: table(compareFeed),
  ingest: table(compareIngest),
  memory: benchMemory,
  push: table(comparePush),
  queue: table(compareQueue),
  read: table(compareRead),
  webhooks: table(compareWebhooks),
}
/** The comparisons of `bench all`. Each creates and removes its own databases. */
const COMPARISONS = [
  compareIngest,
  compareFeed,
  compareRead,
  compareQueue,
  compareWebhooks,
  comparePush,
]
function table(compare: () => Promise<Line[]>): () => Promise<void> {
  return async () => printTable(await compare())
}

/** Prints one table of all comparisons, without those that fail; then it throws. */
async function benchAll(): Promise<void> {
  const lines: Line[] = []
  const failed: unknown[] = []
  for (const compare of COMPARISONS) {
    try {
      lines.push(...(await compare()))
    } catch (error) {
      failed.push(error)
      console.error(error)
    }
  }
  printTable(lines)
  if (failed.length > 0) throw new AggregateError(failed, 'Some subjects failed')
}

const name = process.argv[2] ?? 'ingest'
const bench = benches[name]
if (!bench) {
  console.error(`There is no bench ${name}; there are: ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
await bench()
process.exit(0)
