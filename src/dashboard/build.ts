import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { gzipAsync as gzip } from '@gfx/zopfli'
import { toReason } from '../errors.ts'
import { PATHS } from './app/paths.ts'
import type { AppShell } from './app/worker/scope.ts'
import { bundle, bundlePages, toPreload } from './bundle.ts'
import { drawIcons } from './icons.ts'
import { listGroups, renderMarkdown } from './docs/markdown.ts'
import type { BuiltDocs } from './docs/pages.ts'
import { pack, type PackedFile } from './pack.ts'

// Bundles the browser's code in app/ and packs it with the other files there into the module built.ts, which the
// program carries on every runtime and in the binary. `--watch` goes on doing so whenever a file changes.
const app = fileURLToPath(new URL('app/', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))
const guides = join(root, 'docs')
const output = fileURLToPath(new URL('built.ts', import.meta.url))

/** What is bundled together: the application, and the documentation, which does without it. */
const BUNDLES = [
  ['main.tsx', 'theme-early.ts', 'style/app.css'],
  ['docs/docs.ts', 'style/docs.css'],
]
const WORKER = 'sw.ts'
const LOGO = 'tidings.svg'
const AS_THEY_ARE = /^(?!icons).*\.(html|txt|svg|webmanifest)$/
/** The symbols that every page has in it, for its icons to use. */
const ICONS = 'icons.html'
/** Pictures that the guides show. */
const IMAGES = /\.(svg|webp)$/
/** The script of /swagger: Scalar, for browsers, in one file. */
const REFERENCE = 'scalar.js'
const REFERENCE_SOURCE = 'node_modules/@scalar/api-reference/dist/browser/standalone.js'
/** Files outside the budget: uPlot, which only charts load (keys/plot.ts), and the script of /swagger. */
const APART = /^(plot-|scalar)/
/** The files that the first load of the feed needs. */
const FIRST = /^(main|feed|app|theme-early)\b/
/** Ceilings of gzipped bytes: of the first load of the feed, of each later file, and of the whole application. */
const MAX_FIRST_BYTES = 50 * 1024
const MAX_LATER_BYTES = 25 * 1024
const MAX_BYTES = 120 * 1024
/** What the pages need without a network. */
const IS_KEPT = /^(?!docs).*\.(js|css|svg)$/
const SETTLE_MS = 100

if (process.argv.includes('--watch')) {
  let timer: ReturnType<typeof setTimeout> | undefined
  for (const folder of [app, guides])
    watch(folder, { recursive: true }, () => {
      clearTimeout(timer)
      timer = setTimeout(() => void build(false).catch(logError), SETTLE_MS)
    })
} else await build(true)

/** What is half written does not end the watch. */
function logError(error: unknown): void {
  console.error(toReason(error))
}

/** `isSmall` takes a few seconds for what is left out and packed closer. */
async function build(isSmall: boolean): Promise<void> {
  const header = `// Made by \`bun run build:ui\`${isSmall ? '' : ', in haste,'} from ${hashSources()}.\n`
  if (readCurrent()?.startsWith(header)) return console.log('  The dashboard is built already')
  const scripts = await bundlePages(BUNDLES, isSmall)
  const icons = drawIcons(readFileSync(join(app, LOGO), 'utf8'))
  const pages = pack(new Map([...readStatic(scripts), ...scripts, ...icons]))
  const images = pack(readGuides(IMAGES, name => `docs/${name}`))
  const files = {
    ...pages,
    ...images,
    ...pack(await bundleWorker(pages, isSmall)),
    // Apart from the others, so that browsers keep it from one version to the next.
    ...pack(new Map([[REFERENCE, readReference()]]), 'large'),
  }
  if (isSmall) {
    for (const file of Object.values(files)) await recompress(file)
    report(files)
  }
  writeFileSync(
    output,
    `${header}import type { PackedFile } from './pack.ts'

export const FILES: Readonly<Record<string, PackedFile>> = ${toSource(files)}

/** The guides, as gzip of JSON in base64. */
export const DOCS = '${packDocs(images)}'
`,
  )
}

/** Hashes what the files depend on: all sources, all guides and all packages. Browsers run some sources of the server. */
function hashSources(): string {
  const hash = createHash('sha256').update(readFileSync(join(root, 'bun.lock')))
  const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter(path => path !== output)
    .concat(readdirSync(guides).map(name => join(guides, name)))
  for (const path of sources.sort()) hash.update(`${path}\0`).update(readFileSync(path))
  return hash.digest('hex').slice(0, 16)
}

/** The same gzip to unpack, 3 % smaller. */
async function recompress(file: PackedFile): Promise<void> {
  if (file.gzip === undefined || file.body === undefined) return
  const packed = await gzip(Buffer.from(file.body, 'base64'), { numiterations: 5 })
  file.gzip = Buffer.from(packed).toString('base64')
}

/** The service worker, which knows the files of this build. */
async function bundleWorker(
  files: Readonly<Record<string, PackedFile>>,
  isSmall: boolean,
): Promise<Map<string, Uint8Array>> {
  const shell: AppShell = {
    build: files['main.js']?.url.split('/').at(-2) ?? '',
    files: Object.keys(files).filter(name => IS_KEPT.test(name) && !APART.test(name)),
    pathPrefixes: [...new Set(Object.values(PATHS).map(path => path.split('/')[1] ?? ''))],
  }
  const [[name, code] = ['', '']] = await bundle([WORKER], ['--format=iife'], isSmall)
  return new Map([[name, Buffer.from(`self.SHELL=${JSON.stringify(shell)};${code}`)]])
}

/** The script of /swagger. The Zod in it must not try to compile code, which the policy of the page forbids. */
function readReference(): Uint8Array {
  const code = readFileSync(join(root, REFERENCE_SOURCE))
  return Buffer.concat([Buffer.from('globalThis.__zod_globalConfig={jitless:true};'), code])
}

/** The guides as `readDocs` reads them. */
function packDocs(images: Readonly<Record<string, PackedFile>>): string {
  const toImageUrl = (name: string) => {
    const image = images[`docs/${name}`]
    if (!image) throw new Error(`There is no image ${name} in docs`)
    return image.url
  }
  const rendered = [...readGuides(/\.md$/, name => name.replace('.md', ''))].map(([name, text]) =>
    renderMarkdown({ name, text: String(text) }, { toImageUrl }),
  )
  const index = rendered.find(({ name }) => name === '')
  if (!index) throw new Error('There is no docs/README.md')
  const pages = rendered.filter(page => page !== index)
  const docs: BuiltDocs = { index, pages, groups: listGroups(index) }
  return gzipSync(JSON.stringify(docs), { level: 9 }).toString('base64')
}

/** The files of docs/ whose names match, by the names that `toName` gives them. */
function readGuides(pattern: RegExp, toName: (name: string) => string): Map<string, Buffer> {
  const names = readdirSync(guides).filter(name => pattern.test(name))
  return new Map(names.sort().map(name => [toName(name), readFileSync(join(guides, name))]))
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

/** Prints the gzipped sizes. Throws where the application is over a ceiling. */
function report(files: Readonly<Record<string, PackedFile>>): void {
  const sizes = Object.entries(files)
    .filter(([name]) => /\.(js|css)$/.test(name) && !name.startsWith('docs.'))
    .map(([name, { gzip, body = '' }]) => ({
      name,
      bytes: Buffer.byteLength(gzip ?? body, 'base64'),
    }))
  const add = (some: typeof sizes) => some.reduce((sum, { bytes }) => sum + bytes, 0)
  const first = add(sizes.filter(({ name }) => FIRST.test(name)))
  const sum = add(sizes.filter(({ name }) => !APART.test(name)))
  for (const { name, bytes } of sizes) {
    console.log(`  ${name.padEnd(28)} ${toKb(bytes)}${APART.test(name) ? ' apart' : ''}`)
  }
  console.log(`  ${'First load of the feed'.padEnd(28)} ${toKb(first)} of ${toKb(MAX_FIRST_BYTES)}`)
  console.log(`  ${'JS + CSS, gzip'.padEnd(28)} ${toKb(sum)} of ${toKb(MAX_BYTES)}`)
  const isLarge = sizes.some(
    ({ name, bytes }) => !FIRST.test(name) && name !== REFERENCE && bytes > MAX_LATER_BYTES,
  )
  if (first > MAX_FIRST_BYTES || sum > MAX_BYTES || isLarge)
    throw new Error('The application is over its budget')
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
