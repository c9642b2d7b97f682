import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, normalize, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { clearFolder } from './support/leftovers.ts'

// `bun run mutations` changes one line at a time in a copy of a commit, runs the tests that could
// notice, and prints the changes that no test noticed. The text of a line and the seed choose the
// places, so two commits share those that both have.

type Place = Record<'file' | 'was' | 'now' | 'rank', string> & { line: number }

const { values } = parseArgs({
  options: {
    /** A revision, or the folder of another checkout, whose last commit is taken. */
    ref: { type: 'string', default: 'HEAD' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    count: { type: 'string', default: '200' },
    /** No further file of tests begins after this. */
    seconds: { type: 'string', default: '120' },
    out: { type: 'string', default: '' },
    list: { type: 'boolean' },
  },
})
const { ref, seed } = values
const from = Number(values.from)
const isFolder = fs.existsSync(join(ref, 'package.json'))
const repository = isFolder ? resolve(ref) : resolve(import.meta.dirname, '..')
const commit = run(repository, 'git', 'rev-parse', '--short=8', isFolder ? 'HEAD' : ref).trim()
const out = values.out || resolve(`dist/mutations-${commit}-${seed}-${from}.jsonl`)

/** Words that take each other's place, in TypeScript and in SQL, which is also in templates. */
const CODE = '===/!==, && / || , < / >= , > / <= , + / - ,true/false,Math.min/Math.max'
const SQL =
  ' and / or , is null/ is not null, = / <> , < / >= , > / <= , + / - ,true/false,greatest/least'
const IS_SQL = /^\s*(select|from|where|and|or|(left )?join|on|set|order by|limit|when|having)\b/
const OMISSION = /\bnot (?=exists)| desc\b| for (no key )?update\b/
const CONDITION = /\bif \((?!!)(.+)\)(?= [{\w])/
const CALL = /^\s*(?:await )?[\w.]+\([^()]*\)$/
const NUMBER = /(?<![\w.'"`-])\d[\d_]*(?![\w.'"`])/

const folder = fs.mkdtempSync(join(tmpdir(), 'mutations-'))
fs.chmodSync(folder, 0o755)
/** Files of tests that pass, or not, without a change. */
const sound = new Map<string, boolean>()
const copy = join(folder, 'copy')
const scratch = join(folder, 's')
const read = (path: string) => fs.readFileSync(join(copy, path), 'utf8')
const toName = (file: string) => basename(file).split('.')[0]!
const toRank = (...parts: (string | number)[]) =>
  createHash('sha256')
    .update([seed, ...parts].join('\0'))
    .digest('hex')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void clearFolder(folder).finally(() => process.exit(1)))
}
try {
  await main()
} finally {
  await clearFolder(folder)
}

async function main(): Promise<void> {
  fs.mkdirSync(copy)
  run(folder, 'sh', '-c', 'git -C "$1" archive "$2" | tar -x -C copy', 'sh', repository, commit)
  const all = listPlaces()
  const places = all.slice(from, from + Number(values.count))
  console.log(`${places.length} of ${all.length} places in ${commit}, seed ${seed}`)
  if (values.list) return places.forEach(print)
  run(copy, process.execPath, 'install', '--frozen-lockfile', '--silent')
  run(copy, process.execPath, 'run', 'build:ui')
  fs.mkdirSync(dirname(out), { recursive: true })
  const tests = listFiles('test', /\.test\.tsx?$/)
  const missed: Place[] = []
  for (const [index, place] of places.entries()) {
    const result = await tryPlace(place, tests)
    if (result.by === undefined) missed.push(place)
    const line = { nth: from + index, seed, commit, ...place, ...result }
    fs.appendFileSync(out, `${JSON.stringify(line)}\n`)
    const { by = 'NOT NOTICED', tried } = result
    console.log(`${line.nth} ${place.file}:${place.line + 1}: ${by}, file ${tried}`)
  }
  missed.forEach(print)
  console.log(`${places.length - missed.length} noticed, ${missed.length} not: ${out}`)
}

/** Returns all lines that can be changed, in the order of the seed, each with one change. */
function listPlaces(): Place[] {
  const released = read('releases.json')
  return [...listFiles('src', /\.tsx?$/), ...listFiles('sql', /\.sql$/)]
    .filter(file => !/\.d\.ts$|\/docs\/|unicode|\/schema\.ts$/.test(file))
    .filter(file => !released.includes(`"${toName(file)}"`))
    .flatMap(listOfFile)
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
}

function listOfFile(file: string): Place[] {
  const lines = read(file).split('\n')
  const original = toProgram(file, lines)
  const seen = new Map<string, number>()
  return lines.flatMap((was, line) => {
    const text = was.trim()
    seen.set(text, (seen.get(text) ?? 0) + 1)
    if (/^(--|\/\/|\/?\*|import |export \* |create )/.test(text)) return []
    const isSql = file.endsWith('.sql') || IS_SQL.test(was)
    const changes = (isSql ? SQL : CODE).split(',').flatMap(pair => {
      const [one = '', other = ''] = pair.split('/')
      return [change(was, one, other), change(was, other, one)]
    })
    if (isSql) changes.push(change(was, OMISSION, ''))
    else changes.push(change(was, CONDITION, 'if (!($1))'), change(was, CALL, ''))
    changes.push(change(was, NUMBER, n => String(2 * Number(n.replaceAll('_', '')) + 1)))
    const changed = changes
      .filter(now => now !== undefined)
      .map(now => ({ file, line, was, now, rank: toRank(file, text, seen.get(text)!, now) }))
      .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    // Types and comments leave the program the same. Not each change is a program.
    const program = changed[0] && toProgram(file, lines.with(line, changed[0].now))
    return program === undefined || program === original ? [] : changed.slice(0, 1)
  })
}

/** Tries one change, until a test notices it, or its time is over. */
async function tryPlace(place: Place, tests: string[]) {
  const path = join(copy, place.file)
  const text = read(place.file)
  const chosen = chooseTests(place, text, tests)
  const startedMs = performance.now()
  let tried = 0
  for (const test of chosen) {
    if (performance.now() - startedMs > Number(values.seconds) * 1_000) break
    tried++
    write(path, text.split('\n').with(place.line, place.now).join('\n'), test)
    const isNoticed = !(await passes(test))
    write(path, text, test)
    if (isNoticed && !sound.has(test)) sound.set(test, await passes(test))
    if (isNoticed && sound.get(test)) return { by: test, tried }
  }
  return { tried }
}

/** Runs a file of tests. One that takes over two minutes fails. Nothing of it is left. */
async function passes(test: string): Promise<boolean> {
  fs.mkdirSync(scratch)
  fs.chmodSync(scratch, 0o755)
  // The cluster is made once.
  const shared = join(folder, 'shared')
  const folders = { TMPDIR: scratch, TIDINGS_SCRATCH: scratch, TIDINGS_SHARED: shared }
  const child = spawn(process.execPath, ['test', '--bail', '--timeout=40000', `./${test}`], {
    ...{ cwd: copy, env: { ...process.env, ...folders }, stdio: 'ignore' },
    ...{ timeout: 120_000, killSignal: 'SIGKILL' },
  })
  const [code] = (await once(child, 'close')) as [number | null]
  await clearFolder(scratch)
  return code === 0
}

/** Returns the tests that could notice a change: by path, import and function, quick ones first. */
function chooseTests({ file, line }: Place, text: string, tests: string[]): string[] {
  const sources = listFiles('src', /\.tsx?$/)
  const toStem = (source: string) => source.replace(/^src\//, 'test/').replace(/\.\w+$/, '')
  const ofSource = (source: string) => tests.filter(test => test.startsWith(`${toStem(source)}.`))
  const imports = (importer: string) =>
    [...read(importer).matchAll(/from '(\.[^']+)'/g)].some(
      ([, path = '']) => normalize(join(dirname(importer), path)) === file,
    )
  const before = text
    .split('\n')
    .slice(0, line + 1)
    .join('\n')
  const definitions = [...before.matchAll(/create or replace \w+ (\w+)/g)].map(
    ([, name = '']) => name,
  )
  const names = definitions.slice(-1)
  for (let depth = 0; depth < 3; depth++) names.push(...findCallers(names))
  const mentions = (path: string) => names.some(name => read(path).includes(name))
  const isNamed = (word: string) => tests.filter(test => test.includes(word))
  const reaches = file.endsWith('.sql') ? mentions : imports
  const word = file.endsWith('.sql') ? toName(file).slice(0, -1) : `${dirname(toStem(file))}/`
  const rings = [ofSource(file), tests.filter(reaches), isNamed(word)]
  rings.push(sources.filter(reaches).flatMap(ofSource))
  const words = [file, ...sources.filter(imports)].flatMap(path => path.split(/[/.]/).slice(2, -1))
  rings.push(
    words.flatMap(word => [...isNamed(`/browser/${word}`), ...isNamed(`/commands/${word}`)]),
  )
  const timings = JSON.parse(read('test/timings.json')) as Record<string, number>
  const getMs = (test: string) => timings[test] ?? 5_000
  return [...new Set(rings.flatMap(ring => ring.toSorted((a, b) => getMs(a) - getMs(b))))]
}

/** Returns the functions of the database that call one of these. */
function findCallers(names: string[]): string[] {
  return listFiles('sql/functions', /\.sql$/)
    .flatMap(file => read(file).split(/(?=create or replace )/))
    .filter(text => names.some(name => text.includes(`${name}(`)))
    .map(text => /^create or replace \w+ (\w+)/.exec(text)?.[1] ?? '')
    .filter(name => name !== '' && !names.includes(name))
}

/** Writes a source, and builds the pages for a browser, which fails without them. */
function write(path: string, text: string, test: string): void {
  fs.writeFileSync(path, text)
  if (!test.startsWith('test/browser/')) return
  spawnSync(process.execPath, ['src/dashboard/build.ts', '--quick'], { cwd: copy, timeout: 60_000 })
}

/** Returns the program that runs; undefined if the text is none. */
function toProgram(file: string, lines: string[]): string | undefined {
  const text = lines.join('\n')
  try {
    if (file.endsWith('.sql')) return text
    return new Bun.Transpiler({ loader: file.endsWith('x') ? 'tsx' : 'ts' }).transformSync(text)
  } catch {
    return undefined
  }
}

/** Changes the first place; undefined if that is none, or in a text or a comment. */
function change(line: string, from: string | RegExp, to: string | ((found: string) => string)) {
  const before = line.slice(0, typeof from === 'string' ? line.indexOf(from) : line.search(from))
  const now = line.replace(from, to as string)
  const isText = /\/\/|--/.test(before) || before.split(/['"]/).length % 2 === 0
  return isText || now === line ? undefined : now
}

function listFiles(under: string, pattern: RegExp): string[] {
  const paths = fs.readdirSync(join(copy, under), { recursive: true, encoding: 'utf8' })
  return paths
    .filter(path => pattern.test(path))
    .map(path => join(under, path))
    .toSorted()
}

function print({ file, line, was, now }: Place): void {
  console.log(`${file}:${line + 1}\n  - ${was.trim()}\n  + ${now.trim() || '(left out)'}`)
}

function run(cwd: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}
