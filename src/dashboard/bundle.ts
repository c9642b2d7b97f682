import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { minify } from 'terser'

const app = fileURLToPath(new URL('app/', import.meta.url))
/** How the bundler names what several scripts share, or what is loaded later. */
const CHUNK = /^([\w-]+)\.[a-z0-9]{8}\.js$/
const CHUNKS = /[\w-]+\.[a-z0-9]{8}\.js/g
const FOR_PAGES = [
  '--splitting',
  '--min-chunk-size=16384',
  // The page itself names what the entry needs, which is sooner.
  '--no-module-preload',
  '--public-path=/assets/',
]

/** The scripts and styles of all `bundles`, each bundled apart from the others. */
export async function bundlePages(
  bundles: readonly (readonly string[])[],
  isRelease: boolean,
): Promise<Map<string, Uint8Array>> {
  const bundled = new Map<string, string>()
  for (const entries of bundles)
    for (const [name, code] of await bundle(entries, FOR_PAGES, isRelease)) bundled.set(name, code)
  return shortenNames(bundled)
}

/** Scripts and styles by their names without the folder; scripts find each other under /assets/. */
export async function bundle(
  entries: readonly string[],
  options: readonly string[],
  isSmall: boolean,
): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'tidings-ui-'))
  try {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [
        'build',
        ...entries.map(entry => join(app, entry)),
        '--target=browser',
        '--production',
        ...options,
        '--entry-naming=[name].[ext]',
        '--chunk-naming=[name].[hash].[ext]',
        `--outdir=${folder}`,
      ],
      { encoding: 'utf8' },
    )
    if (status !== 0) throw new Error(`The dashboard cannot be bundled:\n${stdout}${stderr}`)
    const files = new Map<string, string>()
    for (const name of readdirSync(folder)) {
      const code = readFileSync(join(folder, name), 'utf8')
      files.set(name, isSmall && name.endsWith('.js') ? await minifyScript(code) : code)
    }
    return files
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A script without what the bundler leaves in it: 3 % less to load. */
async function minifyScript(code: string): Promise<string> {
  const { code: less } = await minify(code, { module: true, ecma: 2020, compress: { passes: 3 } })
  return less ?? code
}

/** Numbers in place of the bundler's hashes: chunks name each other so often that these were a twentieth of them all. */
function shortenNames(bundled: ReadonlyMap<string, string>): Map<string, Uint8Array> {
  const counts = new Map<string, number>()
  const numbered = new Map<string, string>()
  for (const name of bundled.keys()) {
    const [, stem] = CHUNK.exec(name) ?? []
    if (stem === undefined) continue
    counts.set(stem, (counts.get(stem) ?? 0) + 1)
    numbered.set(name, `${stem}-${counts.get(stem)}.js`)
  }
  return new Map(
    [...bundled].map(([name, code]) => [
      numbered.get(name) ?? name,
      Buffer.from(code.replace(CHUNKS, found => numbered.get(found) ?? found)),
    ]),
  )
}

/** Links to the scripts that the entry imports, so that browsers ask for all of them at once. */
export function toPreload(scripts: ReadonlyMap<string, Uint8Array>): string {
  const found = new Set<string>()
  const collect = (name: string) => {
    const text = Buffer.from(scripts.get(name) ?? '').toString()
    for (const [, imported = ''] of text.matchAll(/(?:from|import)\s*"\/assets\/([^"]+)"/g)) {
      if (found.has(imported)) continue
      found.add(imported)
      collect(imported)
    }
  }
  collect('main.js')
  return [...found].map(name => `<link rel="modulepreload" href="/assets/${name}" />`).join('')
}
