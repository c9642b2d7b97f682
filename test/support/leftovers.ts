import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

interface Running {
  pid: number
  command: string
}

/** A process that is left, and how long ago it started; undefined on systems without /proc. */
export interface Leftover extends Running {
  ageMs: number | undefined
}

const HAS_PROC = existsSync('/proc/self/cwd')
const CLEAR_MS = 20_000
/** See src/database/embedded/socket-folder.ts. */
const SOCKET_FOLDER = /\/tmp\/tidings-[0-9a-f]{12}\b/g
/** Linux counts the start of a process in ticks of this length. */
const TICK_MS = 10

/** Returns true if the process runs. A zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    if (HAS_PROC) return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Returns the start of a process in clock ticks; undefined on systems without /proc. */
export function readStart(pid: number): string | undefined {
  const stat = read(`/proc/${pid}/stat`)
  return stat.slice(stat.lastIndexOf(')')).split(' ')[20]
}

/** Returns the processes that a process has started, such as that of `nsenter`. */
export function listChildren(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
}

/** Returns the other processes that work in `folder`, with their age. */
export function listLeftovers(folder: string): Leftover[] {
  const upMs = Number.parseFloat(read('/proc/uptime')) * 1_000
  return listRunning(folder).map(one => {
    const start = readStart(one.pid)
    return { ...one, ageMs: start === undefined ? undefined : upMs - Number(start) * TICK_MS }
  })
}

/** Returns other processes that work in `folder`: their working directory or TMPDIR. */
export function listRunning(folder: string): Running[] {
  const found = HAS_PROC ? listByProc(folder) : listByPs(folder)
  return found.filter(({ pid }) => pid !== process.pid)
}

/**
 * Ends the processes in `folder`, and removes the folder, with what they have elsewhere: the
 * folders in /tmp of sockets whose paths would have been too long in it, and the shared memory of
 * Postgres.
 * Throws if that lasts too long, for a machine that is `factor` times slower than usual.
 */
export async function clearFolder(folder: string, factor = 1): Promise<void> {
  const deadline = performance.now() + CLEAR_MS * factor
  const elsewhere = new Set<string>()
  const segments = new Set<string>()
  for (;;) {
    const running = listRunning(folder)
    for (const path of listSocketFolders(folder, running)) elsewhere.add(path)
    for (const { pid } of running) {
      const maps = read(`/proc/${pid}/maps`)
      for (const [path] of maps.matchAll(/\/dev\/shm\/PostgreSQL\.\d+/g)) elsewhere.add(path)
      for (const [, id = ''] of maps.matchAll(/ (\d+) +\/SYSV/g)) segments.add(id)
      tryKill(pid)
    }
    if (running.length === 0 && tryRemove(folder)) break
    if (performance.now() > deadline) {
      throw new Error(`${folder} cannot be removed: ${JSON.stringify(running)}`)
    }
    await sleep(50)
  }
  for (const path of elsewhere) rmSync(path, { recursive: true, force: true })
  for (const id of segments) spawnSync('ipcrm', ['--shmem-id', id], { stdio: 'ignore' })
}

/** Returns the folders in /tmp for the sockets of clusters in `folder`, also of stopped ones. */
function listSocketFolders(folder: string, running: Running[]): string[] {
  // The folder changes meanwhile, at which a walk of our own would end.
  const { stdout } = spawnSync('find', [folder, '-name', 'postmaster.opts'], { encoding: 'utf8' })
  const options = stdout.split('\n').map(read)
  const commands = running.map(({ command }) => command)
  return [...options, ...commands].flatMap(text => text.match(SOCKET_FOLDER) ?? [])
}

function listByProc(folder: string): Running[] {
  const isInside = (path: string) => path === folder || path.startsWith(`${folder}/`)
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && isRunning(Number(name)))
    .filter(name => {
      const tmpdir = /(?:^|\0)TMPDIR=([^\0]*)/.exec(read(`/proc/${name}/environ`))?.[1]
      return isInside(tmpdir ?? '') || isInside(readCwd(name))
    })
    .map(name => ({
      pid: Number(name),
      command: read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim(),
    }))
}

/** Without /proc, finds them by command and environment. */
function listByPs(folder: string): Running[] {
  const { stdout } = spawnSync('/bin/ps', ['-axEww', '-o', 'pid=,command='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .filter(line => line.includes(folder))
    .map(line => ({ pid: Number.parseInt(line, 10), command: line.trim() }))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function readCwd(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended by itself.
  }
}

function tryRemove(folder: string): boolean {
  for (const line of read('/proc/mounts').split('\n')) {
    const mounted = line.split(' ')[1] ?? ''
    if (mounted.startsWith(`${folder}/`)) spawnSync('umount', ['-l', mounted])
  }
  try {
    rmSync(folder, { recursive: true, force: true })
    return true
  } catch {
    return false
  }
}
