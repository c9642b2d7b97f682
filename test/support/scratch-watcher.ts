import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'
import { clearFolder, isRunning, readStart } from './leftovers.ts'

// Started by scratch.ts as `scratch-watcher.ts <pid of the run> <its folder> <file name>`. The file
// contains the DATA_DIR of a Postgres that is stopped, and not removed.

const [owner, start = '0', folder = '', keptFile = ''] = process.argv.slice(2)
// A run that has ended may see its id given to another process.
while (isRunning(Number(owner)) && (readStart(Number(owner)) ?? start) === start) await sleep(100)

const file = join(folder, keptFile)
const dataDir = existsSync(file) ? readFileSync(file, 'utf8') : undefined
await clearFolder(folder)
if (dataDir && existsSync(join(dataDir, 'postgres/data/postmaster.pid'))) {
  const postgres = await startEmbedded({ dataDir })
  await postgres.stop()
}
