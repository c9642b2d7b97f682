import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'
import { makeFolder } from '../support/scratch.ts'

const SIZE = '300m'
const REFUSALS = 20
const FULL_MS = 60_000
const CHUNK = Buffer.alloc(1024 * 1024)

/**
 * Fills the disk of an embedded Postgres under load until events are refused, then frees it,
 * `times` times. Needs Linux and root, because the disk is a small one in memory.
 */
export async function runDisk({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const disk = makeFolder()
  run('mount', '-t', 'tmpfs', '-o', `size=${SIZE},mode=0755`, 'tmpfs', disk)
  const [dataDir, ballast] = [join(disk, 'data'), join(disk, 'ballast')]
  try {
    mkdirSync(dataDir)
    const fleet = await startFleet({ servers: 1, projects: 2, dataDir })
    try {
      const load = fleet.load({ clients: 16, random: createRandom(seed) })
      const countRefused = () => load.ledger.outcomes.get('503') ?? 0
      let slowestMs = 0
      for (let nth = 0; nth < times; nth++) {
        await load.successes(200)
        const before = countRefused()
        fillUp(ballast)
        await until(() => countRefused() >= before + REFUSALS, FULL_MS)
        rmSync(ballast)
        const startedMs = performance.now()
        await load.nextSuccess()
        slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedMs))
      }
      await load.successes(200)
      const { figures, problems } = await fleet.check()
      return { figures: { times, 'slowest recovery ms': slowestMs, ...figures }, problems }
    } finally {
      rmSync(ballast, { force: true })
      await fleet.close()
    }
  } finally {
    run('umount', disk)
    rmSync(disk, { recursive: true })
  }
}

/** Writes until the disk is full. */
function fillUp(file: string): void {
  const opened = openSync(file, 'w')
  try {
    for (;;) if (writeSync(opened, CHUNK) < CHUNK.length) return
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOSPC') throw error
  } finally {
    closeSync(opened)
  }
}

function run(command: string, ...words: string[]): void {
  const { status, stderr } = spawnSync(command, words, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command}: ${stderr}`)
}
