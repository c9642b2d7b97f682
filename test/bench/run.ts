import { benchAll } from './all.ts'
import { benchDashboard } from './dashboard.ts'
import { benchDeliveries } from './deliveries.ts'
import { benchFeed } from './feed.ts'
import { benchIngest } from './ingest.ts'
import { benchMemory } from './memory.ts'
import { benchRead } from './read.ts'
import { benchWorkers } from './workers.ts'
import { benchStart } from './start.ts'

// `bun run bench <name>`: prints ratios against named references, measured in the same run.
const benches: Record<string, () => Promise<void>> = {
  all: benchAll,
  dashboard: benchDashboard,
  deliveries: benchDeliveries,
  feed: benchFeed,
  ingest: benchIngest,
  memory: benchMemory,
  read: benchRead,
  workers: benchWorkers,
  start: benchStart,
}

const name = process.argv[2] ?? 'ingest'
const bench = benches[name]
if (!bench) {
  console.error(`There is no bench ${name}; there are: ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
await bench()
process.exit(0)
