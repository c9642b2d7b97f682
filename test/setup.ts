import { afterAll } from 'bun:test'
import './support/scratch.ts'
import { configureLog } from '../src/log.ts'
import { stopPooler } from './support/pooler.ts'
import { closeCluster } from './support/postgres.ts'

// Server logs matter only when a test fails: TIDINGS_TEST_LOG=debug shows them.
const level = process.env['TIDINGS_TEST_LOG']
configureLog(level === 'debug' ? 'debug' : 'error', {
  write: line => level && process.stderr.write(line),
})

// Each file has a database to drop, which takes long on a busy machine.
afterAll(async () => {
  await stopPooler()
  await closeCluster()
}, 60_000)
