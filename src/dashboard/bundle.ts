import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const app = fileURLToPath(new URL('app/', import.meta.url))
/** The bundler's names for shared or lazily loaded chunks. */
const CHUNK = /^([\w-]+)\.[a-z0-9]{8}\.js$/
const CHUNKS = /[\w-]+\.[a-z0-9]{8}\.js/g
/** The rules with `:is` that the bundler repeats for browsers that the pages do not support. */
const OLD_RULE = /[^{}]*:-(?:webkit|moz)-any\([^{}]*\{[^{}]*\}/g
const FOR_PAGES = [
  '--splitting',
  '--min-chunk-size=16384',
  // index.html preloads the modules of the entry, which is earlier.
  '--no-module-preload',
  '--public-path=/assets/',
]

/** Bundles the scripts and styles of each of `bundles` separately. */
export async function bundlePages(
  bundles: readonly (readonly string[])[],
  isRelease: boolean,
): Promise<Map<string, Uint8Array>> {
  const bundled = new Map<string, string>()
  for (const entries of bundles)
    for (const [name, code] of await bundle(entries, FOR_PAGES, isRelease)) bundled.set(name, code)
  return shortenNames(bundled)
}

/** Bundles scripts and styles. Returns them by file name; imports use /assets/. */
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
      // Libraries leave out checks for developers, whatever the environment of the build is.
      { encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } },
    )
    if (status !== 0) throw new Error(`The dashboard cannot be bundled:\n${stdout}${stderr}`)
    const files = new Map<string, string>()
    for (const name of readdirSync(folder)) {
      const code = readFileSync(join(folder, name), 'utf8')
      const isScript = name.endsWith('.js')
      files.set(
        name,
        !isScript ? code.replace(OLD_RULE, '') : isSmall ? await minifyScript(code) : code,
      )
    }
    return files
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Minifies a script further than the bundler does, by 3 %. */
async function minifyScript(code: string): Promise<string> {
  const { minify } = await import('terser')
  const { code: less } = await minify(code, { module: true, ecma: 2020, compress: { passes: 3 } })
  return less ?? code
}

/** Replaces the hashes in chunk names with numbers. The hashes were 5 % of all scripts. */
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

/** Preload links for the scripts that the entry imports, so that browsers load them in parallel. */
export function toPreload(scripts: ReadonlyMap<string, Uint8Array>): string {
  return listImports(scripts, 'main.js')
    .map(name => `<link rel="modulepreload" href="/assets/${name}" />`)
    .join('')
}

/** Lists the scripts that `entry` imports, directly and indirectly, except on demand. */
export function listImports(scripts: ReadonlyMap<string, Uint8Array>, entry: string): string[] {
  const found = new Set<string>()
  const collect = (name: string) => {
    const text = Buffer.from(scripts.get(name) ?? '').toString()
    for (const [, imported = ''] of text.matchAll(/(?:from|import)\s*"\/assets\/([^"]+)"/g)) {
      if (found.has(imported)) continue
      found.add(imported)
      collect(imported)
    }
  }
  collect(entry)
  return [...found]
}
