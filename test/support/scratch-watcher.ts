import { setTimeout as sleep } from 'node:timers/promises'
import { clearFolder, isRunning, readStart } from './leftovers.ts'

// Started by scratch.ts as `scratch-watcher.ts <pid of the run> <its start> <its folder>`.

const [owner, start = '0', folder = ''] = process.argv.slice(2)
// A run that has ended may see its id given to another process.
while (isRunning(Number(owner)) && (readStart(Number(owner)) ?? start) === start) await sleep(100)
await clearFolder(folder)
