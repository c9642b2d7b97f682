// Starts an embedded Postgres that upgrades its data. It is killed when it writes the log line
// KILL_AT for the KILL_NTH time.
import { configureLog } from '../../src/base/log.ts'
import { startEmbedded } from '../../src/database/embedded/embedded.ts'

const { DATA_DIR = '', KILL_AT = '', KILL_NTH = '1' } = process.env
let left = Number(KILL_NTH)
configureLog('debug', {
  write(line) {
    process.stdout.write(line)
    if (line.includes(KILL_AT) && --left === 0) process.kill(process.pid, 'SIGKILL')
  },
})
await startEmbedded({ dataDir: DATA_DIR, allowsUpgrade: true })
console.log('Nothing killed it')
process.exit(1)
