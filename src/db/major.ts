import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBinaries } from './binaries.ts'
import type { Cluster } from './cluster.ts'

/**
 * Throws, with the way over, where the files were made by another major version of Postgres than the one that we carry:
 * it cannot read them. Files whose version cannot be told are left to Postgres to judge.
 */
export async function checkMajor({ home, data, account }: Cluster): Promise<void> {
  const made = readMade(data)
  const carried = readCarried(join(await ensureBinaries(home, account), 'bin', 'postgres'))
  if (made === undefined || carried === undefined || made === carried) return
  throw new Error(
    [
      `The data in ${home} is that of PostgreSQL ${made}, and this Tidings carries ${carried}, which cannot read it.`,
      'Nothing was changed. Carry it over with a backup:',
      '  tidings backup tidings.backup     with the Tidings that ran until now',
      `  mv ${home} ${home}-${made}     to be kept until all is well`,
      '  tidings restore tidings.backup    with this one',
    ].join('\n'),
  )
}

function readMade(data: string): string | undefined {
  try {
    return readFileSync(join(data, 'PG_VERSION'), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Of «postgres (PostgreSQL) 18.4» the 18. */
function readCarried(postgres: string): string | undefined {
  const { stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8', timeout: 5_000 })
  return /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
}
