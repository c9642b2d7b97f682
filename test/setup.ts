import { afterAll } from 'bun:test'
import { writeFileSync } from 'node:fs'
import './support/scratch.ts'
import { isSettingName } from '../src/base/config/names.ts'
import { configureTestLog } from './support/log.ts'
import { stopPooler } from './support/servers/pooler.ts'
import { leaveCluster } from './support/servers/postgres.ts'
import { scaled } from './support/until.ts'

// Settings of this machine, and those of a file .env, are not those of the tests. Programs that
// they start inherit the option, and read no such file.
for (const name of Object.keys(process.env)) if (isSettingName(name)) delete process.env[name]
process.env['BUN_OPTIONS'] = '--no-env-file'

configureTestLog()

const beat = process.env['TIDINGS_TEST_BEAT']
let beats = 0
// A process that still beats is slow, not wedged. The time limits of its tests work.
if (beat !== undefined) setInterval(() => writeFileSync(beat, String(++beats)), 1_000).unref()

// Each file has a database to drop, which takes long on a busy machine.
afterAll(async () => {
  await stopPooler()
  await leaveCluster()
}, scaled(60_000))
