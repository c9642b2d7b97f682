import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const app = fileURLToPath(new URL('app/', import.meta.url))
/** The bundler's names for shared or lazily loaded chunks. */
const CHUNK = /^([\w-]+)\.[a-z0-9]{8}\.js$/
const CHUNKS = /[\w-]+\.[a-z0-9]{8}\.js/g
/** A static import of a chunk. */
const IMPORTS = /\b(?:from|import)\s*"\.\/([^"]+)"/g
/** The script that every page loads first, and the one that follows the first rows. */
const WHOLE = [/^main\.js$/, /^after-load\.\w+\.js$/]
// index.html names the entry, and early.ts preloads what comes next.
const FOR_PAGES = ['--splitting', '--min-chunk-size=16384', '--no-module-preload']
// For `browser`, the bundler also writes for browsers that the pages do not support, which makes
// styles a tenth larger.
const FOR_STYLES = ['--target=bun']

/** Bundles each of `bundles`, of scripts or of styles, separately. */
export async function bundlePages(
  bundles: readonly (readonly string[])[],
  isRelease: boolean,
): Promise<Map<string, Uint8Array>> {
  const bundled = await Promise.all(
    bundles.map(entries => {
      const options = entries.every(entry => entry.endsWith('.css')) ? FOR_STYLES : FOR_PAGES
      return bundle(entries, options, isRelease)
    }),
  )
  return shortenNames(new Map(bundled.flatMap(files => [...files])))
}

/** Bundles scripts or styles. Returns them by file name. */
export async function bundle(
  entries: readonly string[],
  options: readonly string[],
  isSmall: boolean,
): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'tidings-ui-'))
  try {
    const paths = entries.map(entry => join(app, entry))
    await runBundler(app, [...paths, ...options, `--outdir=${folder}`])
    for (const pattern of WHOLE) await joinChunks(folder, pattern)
    const files = new Map<string, string>()
    for (const name of readdirSync(folder).toSorted()) {
      const code = readFileSync(join(folder, name), 'utf8')
      files.set(name, isSmall && name.endsWith('.js') ? await minifyScript(code) : code)
    }
    return files
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Runs the bundler in a folder, from which it resolves the names of external files. Its hashes, and
 * the order of chunks, depend on the way from there to the sources.
 */
async function runBundler(cwd: string, options: readonly string[]): Promise<void> {
  const naming = ['--entry-naming=[name].[ext]', '--chunk-naming=[name].[hash].[ext]']
  await promisify(execFile)(
    process.execPath,
    ['build', '--target=browser', '--production', ...naming, ...options],
    // Libraries leave out checks for developers, whatever the environment of the build is.
    { cwd, env: { ...process.env, NODE_ENV: 'production' } },
  )
}

/**
 * Makes one script of a script and the chunks that it imports. The bundler divides them, because
 * others import some of the modules. These then import from the script. One request less saves
 * 1 KB, too.
 */
async function joinChunks(folder: string, pattern: RegExp): Promise<void> {
  const names = readdirSync(folder).toSorted()
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  const entry = names.find(name => pattern.test(name))
  if (entry === undefined) return
  const chunks = [...read(entry).matchAll(IMPORTS)].flatMap(([, name = '']) =>
    WHOLE.some(one => one.test(name)) ? [] : [name],
  )
  const others = names.filter(name => name !== entry && !chunks.includes(name))
  const whole = join(folder, 'whole.js')
  const joined = join(folder, 'joined.js')
  const parts = [entry, ...chunks].map(name => `export * from './${name}'`)
  writeFileSync(whole, parts.join('\n'))
  await runBundler(folder, [
    whole,
    ...others.map(name => `--external=./${name}`),
    `--outfile=${joined}`,
  ])
  for (const name of ['whole.js', ...chunks]) rmSync(join(folder, name))
  renameSync(joined, join(folder, entry))
  for (const name of others)
    for (const chunk of chunks)
      writeFileSync(join(folder, name), read(name).replaceAll(`./${chunk}`, `./${entry}`))
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
