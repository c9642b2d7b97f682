import { afterAll } from 'bun:test'
import './support/scratch.ts'
import { configureTestLog } from './support/log.ts'
import { stopPooler } from './support/servers/pooler.ts'
import { leaveCluster } from './support/servers/postgres.ts'

configureTestLog()

// Each file has a database to drop, which takes long on a busy machine.
afterAll(async () => {
  await stopPooler()
  await leaveCluster()
}, 60_000)
