import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MIGRATIONS } from '../src/database/sql-files.ts'
import { addRelease, type ReleaseIndex } from './releases.ts'
import { VERSION } from '../src/base/version.ts'

// Adds the version of package.json, with its migrations, to releases.json:
//   bun run release
// From then on, the tests fail if one of these migrations changes.
const file = fileURLToPath(new URL('../releases.json', import.meta.url))
const index = JSON.parse(readFileSync(file, 'utf8')) as ReleaseIndex
const seconds = process.env['SOURCE_DATE_EPOCH']
const date = (seconds === undefined ? new Date() : new Date(Number(seconds) * 1000)).toISOString()
const next = addRelease(index, { version: VERSION, date: date.slice(0, 10) }, MIGRATIONS)
writeFileSync(file, `${JSON.stringify(next, null, 2)}\n`)
console.log(`releases.json has ${VERSION}`)
