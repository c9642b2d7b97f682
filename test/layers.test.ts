import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { listRows, readSection } from './support/docs.ts'

const SRC = resolve(import.meta.dir, '../src')
const CLIENT = resolve(SRC, '../clients/typescript/src')

/**
 * The rooms in order, and the folders of each one in order. A file may import what comes before its
 * own folder. '' stands for the files that are in no folder of their room.
 */
const ROOMS: Record<string, string[]> = {
  base: ['', 'passwords', 'config'],
  database: ['', 'embedded', 'secrets'],
  http: ['', 'egress', 'limits'],
  access: [
    'audit',
    'guard',
    'sign-in',
    'organizations',
    'account',
    'passkeys',
    'second-factor',
    'tokens',
    'keys',
    'openid',
  ],
  log: [
    'channels',
    'identities',
    'events',
    'ntfy',
    'hooks',
    'threads',
    'insights',
    'views',
    'export',
    'overview',
    'feed',
    'demo',
  ],
  delivery: [
    'outbox',
    'push',
    'webhooks',
    'views',
    'rules',
    'silences',
    'heartbeats',
    'questions',
    'timers',
    'acknowledgements',
    'mcp',
  ],
  dashboard: [''],
  server: ['backup', ''],
  cli: ['', 'apply', 'doctor'],
}
const PLACES = [
  ...Object.entries(ROOMS).flatMap(([room, folders]) =>
    folders.map(folder => (folder === '' ? room : `${room}/${folder}`)),
  ),
  'main',
]
const BROWSER_PACKAGES = new Set(['preact', 'preact/hooks', 'preact-iso', '@preact/signals'])
/** Server modules that also run in the browser: they import nothing that cannot. */
const PURE = new Set([
  'base/closest.ts',
  'base/display-text.ts',
  'base/passwords/length.ts',
  'base/period.ts',
  'delivery/rules/evaluate.ts',
  'http/exact-json.ts',
  'log/channels/level.ts',
  'log/events/metadata-values.ts',
  'log/events/search-explanation.ts',
  'log/events/search-filters.ts',
  'log/events/search-lexer.ts',
  'log/events/search-query.ts',
  'log/events/search-writer.ts',
  'log/events/state.ts',
  'log/events/timestamp.ts',
  'log/threads/fold.ts',
])
/** Files that connect to what the operator has set, or to the server itself. */
const CONNECTING = [
  'base/http-get.ts',
  'cli/apply/api.ts',
  'cli/demo.ts',
  'database/embedded/socket-folder.ts',
  'database/socket.ts',
]
const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s*'([^']+)'|(?:typeof )?import\(\s*'([^']+)'\s*\)|(?:^|\n)import '([^']+)'/g

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  file => /\.tsx?$/.test(file) && !file.endsWith('.d.ts') && file !== 'dashboard/built.ts',
)

/** Returns the room of a file with its folder, to which the file of its name beside it belongs. */
function toPlace(file: string): string {
  const [room = '', folder = ''] = file.split('/').map(name => name.replace(/\.tsx?$/, ''))
  const place = `${room}/${folder}`
  return PLACES.includes(place) ? place : room
}

function readImports(file: string): { specifier: string; isTypeOnly: boolean }[] {
  const text = readFileSync(join(SRC, file), 'utf8')
  return [...text.matchAll(IMPORT)].map(match => ({
    specifier: match[1] ?? match[2] ?? match[3] ?? '',
    isTypeOnly: /(import|export) type\s|^typeof/.test(match[0]),
  }))
}

test('every file is in a folder of a room', () => {
  const lost = files.filter(file => {
    const path = file.split('/')
    const isLoose = path.length < 3 || path[0] === 'dashboard'
    const place = isLoose ? toPlace(file) : `${path[0]}/${path[1]}`
    return !PLACES.includes(place)
  })
  expect(lost).toEqual([])
})

test('the server and its quick build import only packages that --production installs', () => {
  // Only a release build loads these two.
  const allowed = new Set([...Object.keys(manifest.dependencies), 'terser', '@gfx/zopfli'])
  const missing = files.flatMap(file =>
    readImports(file)
      .filter(({ specifier, isTypeOnly }) => !isTypeOnly && !/^(\.|node:|bun:)/.test(specifier))
      .map(({ specifier }) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '')
      .filter(name => !allowed.has(name))
      .map(name => `${file}: ${name}`),
  )
  expect(missing).toEqual([])
})

test('docs/architecture.md shows the rooms and their folders in this order', () => {
  const shown = listRows(readSection('docs/architecture.md', 'The nine rooms')).map(
    ([room = '', , folders = '']) => [...`${room}, ${folders}`.matchAll(/[a-z-]+/g)].map(String),
  )
  const expected = Object.entries(ROOMS).map(([room, folders]) => [
    room,
    ...folders.filter(folder => folder !== ''),
  ])
  expect(shown).toEqual(expected)
})

test('a folder imports only folders of rooms before its own, and those before it in its room', () => {
  const violations = files.flatMap(file =>
    readImports(file).flatMap(({ specifier }) => {
      if (!specifier.startsWith('.')) return []
      const target = relative(SRC, resolve(SRC, dirname(file), specifier))
      if (target.startsWith('..')) return []
      const [from, to] = [toPlace(file), toPlace(target)]
      if (from === to) return []
      return PLACES.indexOf(to) < PLACES.indexOf(from) ? [] : [`${file} imports ${target}`]
    }),
  )
  expect(violations).toEqual([])
})

test('files have no circular imports, types included', () => {
  const targets = new Map(
    files.map(file => {
      const local = readImports(file).filter(({ specifier }) => specifier.startsWith('.'))
      return [file, local.map(one => relative(SRC, resolve(SRC, dirname(file), one.specifier)))]
    }),
  )
  const done = new Set<string>()
  const circles: string[] = []
  function walk(file: string, way: readonly string[]): void {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    done.add(file)
    for (const target of targets.get(file) ?? []) walk(target, [...way, file])
  }
  for (const file of files) walk(file, [])
  expect(circles).toEqual([])
})

test('only commands that show pages load the built ones', () => {
  const loaded = new Set<string>()
  function load(file: string): void {
    if (loaded.has(file) || !files.includes(file)) return
    loaded.add(file)
    const text = readFileSync(join(SRC, file), 'utf8').replace(/^#!.*/, '')
    const transpiler = new Bun.Transpiler({ loader: file.endsWith('x') ? 'tsx' : 'ts' })
    for (const { kind, path } of transpiler.scanImports(text)) {
      if (kind !== 'import-statement' || !path.startsWith('.')) continue
      expect([file, path]).not.toEqual([file, expect.stringMatching(/\/built\.ts$/)])
      load(relative(SRC, resolve(SRC, dirname(file), path)))
    }
  }
  load('main.ts')
  expect(loaded.size).toBeGreaterThan(100)
})

test('the TypeScript client imports only its own files, and only the command line imports it', () => {
  const imports = readdirSync(CLIENT).flatMap(file =>
    readImports(relative(SRC, join(CLIENT, file))).map(({ specifier }) => specifier),
  )
  expect(imports.filter(specifier => !specifier.startsWith('./'))).toEqual([])
  const importers = files.filter(file =>
    readImports(file).some(({ specifier }) => specifier.includes('/clients/')),
  )
  expect(importers.filter(file => !toPlace(file).startsWith('cli'))).toEqual([])
})

test("the browser's code imports only types from the server, and few packages", () => {
  const isBrowsers = (file: string) => file.startsWith('dashboard/app/')
  const violations = files.filter(isBrowsers).flatMap(file =>
    readImports(file).flatMap(({ specifier, isTypeOnly }) => {
      const target = specifier.startsWith('.')
        ? relative(SRC, resolve(SRC, dirname(file), specifier))
        : specifier
      const isAllowed =
        isBrowsers(target) || isTypeOnly || BROWSER_PACKAGES.has(target) || PURE.has(target)
      return isAllowed ? [] : [`${file} imports ${target}`]
    }),
  )
  expect(violations).toEqual([])
})

test('a runtime is named in platform.ts alone', () => {
  const naming = files.filter(
    file =>
      file !== 'base/platform.ts' &&
      /\b(Bun|Deno)\b/.test(toCode(readFileSync(join(SRC, file), 'utf8'))),
  )
  expect(naming).toEqual([])
})

test('only src/http/egress connects to an address that others name', () => {
  const imported =
    /import (?!type)[^;]*?\b(connect|request|Socket|lookup)\b[^;]*?'node:(net|tls|https?|http2|dns\S*)'/
  const called = /\b(await|return) fetch\(|new (WebSocket|AwsClient)\(/
  const opening = files.filter(file => {
    const text = readFileSync(join(SRC, file), 'utf8')
    const hasOwnFetch = text.includes('function fetch(')
    return imported.test(text) || (!hasOwnFetch && called.test(toCode(text)))
  })
  const others = opening.filter(file => !/^http\/egress\/|^dashboard\/app\//.test(file))
  expect(others.sort()).toEqual(CONNECTING)
})

test('local imports end in .ts, .sql or .json', () => {
  const bare = files.flatMap(file =>
    readImports(file)
      .filter(({ specifier }) => specifier.startsWith('.') && !/\.(tsx?|sql|json)$/.test(specifier))
      .map(({ specifier }) => `${file}: ${specifier}`),
  )
  expect(bare).toEqual([])
})

test('v1-routes.ts has the routes of /v1 of its folder, and other files of routes have none', () => {
  const routes = files.filter(file => /(^|[/-])routes\.ts$/.test(file))
  const ofV1 = routes.filter(file => /'\/v1\//.test(readFileSync(join(SRC, file), 'utf8')))
  expect(ofV1.length).toBeGreaterThan(1)
  expect(ofV1).toEqual(routes.filter(file => file.endsWith('/v1-routes.ts')))
})

test('every file has a specific name', () => {
  const empty = /(^|\/)(index|utils|helpers|types|service|manager|common)\.tsx?$/
  expect(files.filter(file => empty.test(file))).toEqual([])
})

test('no file uses any or silences the compiler', () => {
  const loose = files.filter(file =>
    /:\s*any\b|\bas any\b|<any>|@ts-ignore|@ts-expect-error|@ts-nocheck/.test(
      toCode(readFileSync(join(SRC, file), 'utf8')),
    ),
  )
  expect(loose).toEqual([])
})

/** Returns the text without comments and strings, which may contain anything. */
function toCode(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, "''")
}
