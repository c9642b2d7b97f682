import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { sendSignal } from '../../src/database/embedded/processes.ts'
import { spawnProgram, startProgram, toEmbeddedUrl } from '../support/servers/process.ts'
import { newProject } from '../support/worlds/project.ts'
import type { RunResult } from './ledger-check.ts'
import { makeFolder } from '../support/scratch.ts'
import { listPostgres } from './fleet.ts'
import { createRandom } from './random.ts'
import { openSql } from '../support/sql.ts'

/**
 * Kills first starts on an empty folder at random moments, every other time Postgres too: the last
 * one must serve.
 */
export async function runStart({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const problems: string[] = []
  let slowestMs = 0
  for (let nth = 0; nth < times; nth++) {
    const dataDir = makeFolder()
    for (let kills = 0; kills < 3; kills++) {
      const victim = spawnProgram({ env: { DATA_DIR: dataDir } })
      victim.listening.catch(() => {})
      await sleep(random.below(1_300))
      await victim.kill('SIGKILL')
      if (nth % 2 === 0) for (const pid of listPostgres(dataDir)) sendSignal(pid, 'SIGKILL')
    }
    const startedMs = performance.now()
    const program = await startProgram({ env: { DATA_DIR: dataDir } })
    slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedMs))
    const sql = openSql(toEmbeddedUrl(dataDir))
    const { post } = await newProject({ sql, url: program.url })
    const { status } = await post('/v1/events', { channelName: 'payments', title: 'New payment' })
    if (status !== 201) problems.push(`after ${nth} the answer is ${status}`)
    await sql.end({ timeout: 1 })
    const { code } = await program.kill('SIGTERM')
    if (code !== 0) problems.push(`after ${nth} the exit is ${code}`)
    const left = listPostgres(dataDir)
    if (left.length > 0) problems.push(`after ${nth} there are ${left.length} processes left`)
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { figures: { 'kills of a start': times * 3, 'slowest start ms': slowestMs }, problems }
}
