import { afterAll } from 'bun:test'
import './support/scratch.ts'
import { configureLog } from '../src/log.ts'
import { closeCluster } from './support/postgres.ts'

// What a server logs in a test is of interest when the test fails: TIDINGS_TEST_LOG=debug shows it.
const level = process.env['TIDINGS_TEST_LOG']
configureLog(level === 'debug' ? 'debug' : 'error', line => {
  if (level) process.stderr.write(line)
})

// A database for each file goes, and a busy machine takes its time for that.
afterAll(closeCluster, 60_000)
