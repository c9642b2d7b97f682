import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { readCluster } from '../../../src/database/embedded/cluster.ts'
import { withLock } from '../../../src/database/embedded/file-lock.ts'
import { findPostmaster, toUrl } from '../../../src/database/embedded/postmaster.ts'
import type { Container } from '../containers.ts'
import { makeFolder, SCRATCH, SHARED } from '../scratch.ts'
import { APP_SECRET } from '../secret.ts'
import { scaled } from '../until.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const SOURCE = join(ROOT, 'src/main.ts')
const BUN = process.versions['bun'] ? process.execPath : 'bun'
/** The executable; `compileBinary` makes it. */
export const BINARY = join(SHARED, 'tidings')
/** With this variable, processes on Bun run the program that `buildProgram` made at this path. */
export const BUILT_PROGRAM = 'TIDINGS_TEST_PROGRAM'
const START_MS = scaled(60_000)
const COMPILE_MS = scaled(300_000)

/** The end of a process: its exit code, or the signal that ended it. */
export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** The real server as a separate process; it is killed when it goes out of scope. */
export interface Program extends AsyncDisposable {
  pid: number
  /** The URL of its HTTP server, without a trailing slash. */
  url: string
  port: number
  /** The token that this start printed, if it was the first on its database. */
  firstKey: string | undefined
  /** The token of the setup link that it printed, if the installation has no owner. */
  setupToken: string | undefined
  /** All output, from both streams. */
  output(): string
  /** Returns log lines that contain `text`. */
  logged(text: string): string[]
  /** Returns true while it runs. */
  isRunning(): boolean
  /** Sends a signal, and resolves when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<Exit>
  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void
  exited: Promise<Exit>
}

export type Runtime = 'bun' | 'deno' | 'binary'

export interface ProgramOptions {
  env: Record<string, string>
  /** The runtime, by default Bun with what `findMain` returns. */
  runtime?: Runtime
  /** The arguments after `src/main.ts`. */
  args?: string[]
  /** The working directory and user, with no environment but `env`. */
  bare?: { cwd: string; uid?: number }
  /** A test program that runs instead of `src/main.ts`; on Bun alone. */
  program?: string
  /** The text of standard input. By default it is empty. */
  input?: string
  /** The command that starts it, such as that of a container, where `kill` cannot kill it. */
  container?: Pick<Container, 'enter'>
}

const running = new Set<number>()

/** Starts `serve` on a free port and resolves when it listens. */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const program = spawnProgram(options)
  const url = await program.listening
  return {
    ...program,
    url,
    port: Number(new URL(url).port),
    firstKey: program.find(/Bearer (tdg_\w+)/),
    setupToken: program.find(/\/setup#([\w-]+)/),
  }
}

/** Runs a command line of the program to its end. */
export async function runProgram(
  options: ProgramOptions,
): Promise<{ code: number | null; output: string }> {
  const program = spawnProgram(options)
  const { code } = await program.exited
  return { code, output: program.output() }
}

/** Starts the program without waiting: for programs that end by themselves, or never listen. */
export function spawnProgram(options: ProgramOptions) {
  const { env, runtime, args = ['serve'], bare, program, input, container } = options
  const [command, ...before] = [
    ...(container?.enter ?? []),
    ...(program === undefined ? toCommand(runtime) : [BUN, program]),
  ]
  const child = spawn(command!, [...before, ...args], {
    // A file .env in the checkout must not count.
    cwd: bare?.cwd ?? SCRATCH,
    ...(bare?.uid !== undefined && { uid: bare.uid, gid: bare.uid }),
    env: {
      ...(bare
        ? { PATH: '/nonexistent' }
        : { PATH: process.env['PATH'], HOME: process.env['HOME'] }),
      TMPDIR: SCRATCH,
      // The default is a folder of the checkout.
      ...(!bare && { DATA_DIR: makeFolder() }),
      PORT: '0',
      // A settings file of this machine must not count.
      TIDINGS_CONFIG: '/dev/null',
      // With an embedded database the secret is in DATA_DIR.
      ...('DATABASE_URL' in env && { APP_SECRET: APP_SECRET.toString('base64') }),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(input)
  const pid = child.pid
  if (pid === undefined) throw new Error(`${command} cannot be started`)
  running.add(pid)

  let output = ''
  const listening = Promise.withResolvers<string>()
  const late = setTimeout(
    () => listening.reject(new Error(`Not listening after ${START_MS} ms:\n${output}`)),
    START_MS,
  )
  const watch = (chunk: Buffer) => {
    output += chunk.toString()
    const url = findUrl(output)
    // The greeting, which contains the key, follows the line in the log.
    if (url !== undefined && output.includes(' is running: ')) listening.resolve(url)
  }
  child.stdout.on('data', watch)
  child.stderr.on('data', watch)
  const exited = new Promise<Exit>(resolve => {
    child.once('close', (code, signal) => {
      running.delete(pid)
      listening.reject(new Error(`It ended (${signal ?? code}) before it listened:\n${output}`))
      resolve({ code, signal })
    })
  })
  listening.promise.then(
    () => clearTimeout(late),
    () => clearTimeout(late),
  )

  return {
    pid,
    listening: listening.promise,
    exited,
    output: () => output,
    logged: (text: string) => output.split('\n').filter(line => line.includes(text)),
    isRunning: () => running.has(pid),
    find: (pattern: RegExp) => pattern.exec(output)?.[1],
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    kill(signal: NodeJS.Signals = 'SIGKILL') {
      child.kill(signal)
      return exited
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Returns the worker processes that a server has started, oldest first. */
export function listWorkers(program: Pick<Program, 'logged'>): number[] {
  return program
    .logged('"logger":"tidings.workers"')
    .filter(line => line.includes('"pid"'))
    .map(line => (JSON.parse(line) as { properties: { pid: number } }).properties.pid)
}

/** Returns the URL of the running embedded database in this DATA_DIR, for the server's role. */
export function toEmbeddedUrl(dataDir: string): string {
  const cluster = readCluster(realpathSync(join(dataDir, 'postgres')))
  const postmaster = findPostmaster(cluster)
  if (!postmaster) throw new Error(`No Postgres runs in ${dataDir}`)
  return toUrl(cluster.serverRole, postmaster)
}

/** Returns the URL from the line that says where the server listens. */
function findUrl(output: string): string | undefined {
  // A start that begins anew can have another port.
  for (const line of output.split('\n').toReversed()) {
    if (!line.includes('Listening on') || !line.endsWith('}')) continue
    const { properties } = JSON.parse(line) as { properties: { address: string } }
    const [port = ''] = /\d+$/.exec(properties.address) ?? []
    return `http://127.0.0.1:${port}`
  }
  return undefined
}

/** Returns the command that runs the program, without its arguments. */
function toCommand(runtime: Runtime | undefined): string[] {
  if (runtime === 'binary') return [BINARY]
  if (runtime === 'deno') return [findDeno(), 'run', '-A', '--no-check', SOURCE]
  return [BUN, runtime === 'bun' ? SOURCE : findMain()]
}

/** Returns the path of the program that processes on Bun run: its source, or what was built. */
export function findMain(): string {
  return process.env[BUILT_PROGRAM] ?? SOURCE
}

/** Returns Deno itself: the npm wrapper script does not forward signals. */
export function findDeno(): string {
  const packages = join(ROOT, 'node_modules/@deno')
  const [platform] = readdirSync(packages)
  if (platform === undefined) throw new Error('Deno is not installed: bun install')
  return join(packages, platform, 'deno')
}

/** The line of main.ts that runs the program. */
const RUN = 'process.exit(await main(process.argv.slice(2)))'

/** Builds the program to one file with bytecode, and returns the path of the file that runs it. */
export function buildProgram(): string {
  const folder = join(SHARED, 'program')
  mkdirSync(folder)
  // Native modules are found there.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const source = readFileSync(SOURCE, 'utf8')
  if (!source.includes(RUN)) throw new Error(`src/main.ts has no line ${RUN}`)
  // Code with bytecode cannot await at the top, so another file does.
  const exporting = source
    .replace(RUN, 'export { main }')
    .replaceAll(
      / from '\.\/(.*)'/g,
      (_, path: string) => ` from ${JSON.stringify(join(ROOT, 'src', path))}`,
    )
  const entry = join(folder, 'program.ts')
  writeFileSync(entry, exporting)
  const { status, stderr } = spawnSync(
    BUN,
    ['build', '--target=bun', '--format=cjs', '--bytecode', '--outdir', folder, entry],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } },
  )
  if (status !== 0) throw new Error(`The program cannot be built:\n${stderr}`)
  const main = join(folder, 'main.js')
  writeFileSync(main, `import { main } from './program.js'\n${RUN}\n`)
  return main
}

/** Compiles the program to one executable, once for all files of a run. */
export async function compileBinary(): Promise<void> {
  await withLock(`${BINARY}.lock`, COMPILE_MS, async () => {
    if (existsSync(BINARY)) return
    const child = spawn(BUN, [join(ROOT, 'packaging/compile.ts'), '--outfile', BINARY], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0) throw new Error('The program does not compile')
  })
}
