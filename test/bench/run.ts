import { benchIngest } from './ingest.ts'
import { benchMemory } from './memory.ts'

// `bun run bench <name>`: prints ratios against named references, measured in the same run.
const benches: Record<string, () => Promise<void>> = {
  ingest: benchIngest,
  memory: benchMemory,
}

const name = process.argv[2] ?? 'ingest'
const bench = benches[name]
if (!bench) {
  console.error(`There is no bench ${name}; there are: ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
await bench()
process.exit(0)
