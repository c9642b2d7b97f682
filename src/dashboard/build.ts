import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toReason } from '../errors.ts'
import { PATHS } from './app/paths.ts'
import type { Shell } from './app/worker/scope.ts'
import { drawIcons } from './icons.ts'
import { pack, type PackedFile } from './pack.ts'

// Bundles the browser's code in app/ and packs it with the other files there into the module built.ts, which the
// program carries on every runtime and in the binary. `--watch` goes on doing so whenever a file changes.
const app = fileURLToPath(new URL('app/', import.meta.url))
const output = fileURLToPath(new URL('built.ts', import.meta.url))

/** What is bundled together: the application, and the documentation, which does without it. */
const BUNDLES = [
  ['main.tsx', 'theme-early.ts', 'style/app.css'],
  ['docs/docs.ts', 'style/docs.css'],
]
const WORKER = 'sw.ts'
const LOGO = 'tidings.svg'
const AS_THEY_ARE = /^(?!icons).*\.(html|txt|svg|webmanifest)$/
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
/** The symbols that every page has in it, for its icons to use. */
const ICONS = 'icons.html'
/** What is loaded only where a chart is drawn, keys/plot.ts with uPlot: it has no part in the budget. */
const APART = /^plot-/
/** The whole application: what a reader's browser loads sooner or later. */
const BUDGET_BYTES = 70 * 1024
/** What the pages need without a network. */
const IS_KEPT = /^(?!docs).*\.(js|css|svg)$/
const SETTLE_MS = 100

build()
if (process.argv.includes('--watch')) {
  let timer: ReturnType<typeof setTimeout> | undefined
  watch(app, { recursive: true }, () => {
    clearTimeout(timer)
    timer = setTimeout(tryBuild, SETTLE_MS)
  })
}

/** What is half written does not end the watch. */
function tryBuild(): void {
  try {
    build()
  } catch (error) {
    console.error(toReason(error))
  }
}

function build(): void {
  const scripts = shorten(new Map(BUNDLES.flatMap(entries => [...bundle(entries, FOR_PAGES)])))
  const icons = drawIcons(readFileSync(join(app, LOGO), 'utf8'))
  const pages = pack(new Map([...readStatic(scripts), ...scripts, ...icons]))
  const files = { ...pages, ...pack(bundleWorker(pages)) }
  const text = `// Made by \`bun run build:ui\` from the files of app/.
import type { PackedFile } from './pack.ts'

export const FILES: Readonly<Record<string, PackedFile>> = ${toSource(files)}
`
  if (readCurrent() !== text) writeFileSync(output, text)
  report(files)
}

/** Scripts and styles by their names without the folder; scripts find each other under /assets/. */
function bundle(entries: readonly string[], options: readonly string[]): Map<string, string> {
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
    return new Map(
      readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')]),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Numbers in place of the bundler's hashes: chunks name each other so often that these were a twentieth of them all. */
function shorten(bundled: ReadonlyMap<string, string>): Map<string, Uint8Array> {
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

/** The service worker, which knows the files of this build. */
function bundleWorker(files: Readonly<Record<string, PackedFile>>): Map<string, Uint8Array> {
  const shell: Shell = {
    build: files['main.js']?.url.split('/').at(-2) ?? '',
    files: Object.keys(files).filter(name => IS_KEPT.test(name) && !APART.test(name)),
    places: [...new Set(Object.values(PATHS).map(path => path.split('/')[1] ?? ''))],
  }
  const [[name, code] = ['', '']] = bundle([WORKER], ['--format=iife'])
  return new Map([[name, Buffer.from(`self.SHELL=${JSON.stringify(shell)};${code}`)]])
}

function readStatic(scripts: ReadonlyMap<string, Uint8Array>): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  for (const name of readdirSync(app).filter(name => AS_THEY_ARE.test(name))) {
    const text = readFileSync(join(app, name), 'utf8')
      .replace('<!-- preload -->', () => toPreload(scripts))
      .replace('<!-- icons -->', () => readFileSync(join(app, ICONS), 'utf8'))
    files.set(name, Buffer.from(text))
  }
  return files
}

/** Links to the scripts that the entry imports, so that browsers ask for all of them at once. */
function toPreload(scripts: ReadonlyMap<string, Uint8Array>): string {
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

/** Prints the gzip sizes; throws when the application is over its budget. */
function report(files: Readonly<Record<string, PackedFile>>): void {
  const sizes = Object.entries(files)
    .filter(([name]) => /\.(js|css)$/.test(name) && !name.startsWith('docs.'))
    .map(([name, { gzip, body }]) => ({ name, bytes: Buffer.byteLength(gzip ?? body, 'base64') }))
  const sum = sizes.reduce((total, { name, bytes }) => total + (APART.test(name) ? 0 : bytes), 0)
  for (const { name, bytes } of sizes) {
    console.log(`  ${name.padEnd(28)} ${toKb(bytes)}${APART.test(name) ? ' apart' : ''}`)
  }
  console.log(`  ${'JS + CSS, gzip'.padEnd(28)} ${toKb(sum)} of ${toKb(BUDGET_BYTES)}`)
  if (sum > BUDGET_BYTES) throw new Error('The application is over its budget')
}

function toKb(bytes: number): string {
  return `${(bytes / 1024).toFixed(1).padStart(6)} KB`
}

function toSource(files: object): string {
  // JSON leaves out what is undefined, but the type wants to see it.
  return JSON.stringify(files, (_, value: unknown) => value ?? null, 2).replaceAll(
    ': null',
    ': undefined',
  )
}

function readCurrent(): string | undefined {
  try {
    return readFileSync(output, 'utf8')
  } catch {
    return undefined // Never built before.
  }
}
