import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUNDLES, REFERENCE_PACKAGE, WORKER } from '../../src/dashboard/entries.ts'

const SERVER = ['src/main.ts', '--target=bun']
const BROWSER = [
  ...[...BUNDLES.flat(), WORKER].map(entry => `src/dashboard/app/${entry}`),
  '--target=browser',
  '--production',
]
/** The folder of a package in the path of a file. Packages can be inside packages. */
const PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/

/**
 * Returns the folders of the npm packages that the bundler takes into the program and its pages,
 * such as `node_modules/elysia`. `root` is the folder of the checkout.
 */
export function listBundledPackages(root: string): string[] {
  const files = [SERVER, BROWSER].flatMap(args => listInputs(root, args))
  const folders = files.flatMap(file => PACKAGE.exec(file) ?? [])
  return [...new Set([...folders, REFERENCE_PACKAGE])].sort()
}

/** Runs the bundler. Returns the paths of the files that it read, relative to `root`. */
function listInputs(root: string, args: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tidings-sbom-'))
  try {
    const metafile = join(folder, 'meta.json')
    const { status, stderr } = spawnSync(
      process.execPath,
      ['build', ...args, `--outdir=${folder}`, `--metafile=${metafile}`],
      // As src/dashboard/bundle.ts sets it: libraries then import less.
      { cwd: root, encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } },
    )
    if (status !== 0) throw new Error(`The contents of the program cannot be listed:\n${stderr}`)
    const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: object }
    return Object.keys(inputs)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
