import { parseArgs } from 'node:util'
import '../support/scratch.ts'
import { configureLog } from '../../src/base/log.ts'
import { closeCluster } from '../support/servers/postgres.ts'
import { PATRONI_LOSSES, startPatroni } from '../support/servers/patroni.ts'
import { startPair } from '../support/servers/standby.ts'
import { runAll } from './all.ts'
import type { RunResult } from './ledger-check.ts'
import { runCitus } from './citus.ts'
import { newSeed } from './random.ts'
import { checkOut, runUpgrade } from './upgrade.ts'
import { PAIR_LOSSES, runStandby, toCluster } from './standby.ts'

/**
 * Runs by hand: `bun test/faults/run.ts <name> [--times N] [--seconds N | --minutes N] [--seed N]
 * [--from REVISION]`. Each server has WORKERS processes; from (a revision of git) is an option of
 * upgrade.
 */
const RUNS: Record<
  string,
  (options: { seed: number; times: number; seconds: number; from: string }) => Promise<RunResult>
> = {
  all: ({ seed, seconds }) => runAll({ seed, seconds: seconds || 600 }),
  citus: ({ seed, times }) => runCitus({ seed, events: times || 100_000 }),
  async standby({ seed, times }) {
    await using cluster = toCluster(await startPair())
    return await runStandby({ seed, times: times || 20, cluster, losses: PAIR_LOSSES })
  },
  async patroni({ seed, times }) {
    await using cluster = await startPatroni()
    return await runStandby({ seed, times: times || 20, cluster, losses: PATRONI_LOSSES })
  },
  upgrade: ({ seed, from }) => runUpgrade({ seed, old: checkOut(from || undefined) }),
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    times: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '0' },
    minutes: { type: 'string', default: '0' },
    seed: { type: 'string', default: '0' },
    from: { type: 'string', default: '' },
  },
})
const [name = ''] = positionals
const run = RUNS[name]
if (!run) {
  console.error(`Name a run: ${Object.keys(RUNS).join(', ')}`)
  process.exit(2)
}
configureLog('error', process.stderr)
const seed = Number(values.seed) || newSeed()
const startedMs = performance.now()
const { figures, problems } = await run({
  seed,
  times: Number(values.times),
  from: values.from,
  seconds: Number(values.seconds) || Number(values.minutes) * 60,
})
await closeCluster()

const rows = { seed, ...figures, 'took s': ((performance.now() - startedMs) / 1000).toFixed(1) }
for (const [label, value] of Object.entries(rows)) console.log(`${label.padEnd(24)} ${value}`)
for (const problem of problems.slice(0, 20)) console.log(`PROBLEM  ${problem}`)
console.log(problems.length === 0 ? `ok       ${name}` : `FAILED   ${name}: ${problems.length}`)
process.exit(problems.length === 0 ? 0 : 1)
