import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { isOutOfFiles, isTimeOut } from '../../base/system-error.ts'

// This process sees only the processes of its PID namespace, and those of namespaces inside it. A
// cluster without visible processes can be running all the same.

/** Identifies the processes of one cluster by working directory, or else by process title. */
export type ClusterIdentity = { data: string; clusterName: string }

const HAS_PROC = existsSync('/proc/self/cwd')

/**
 * Returns true when `pid` is a running Postgres process of the cluster. Zombies, other programs
 * with a reused pid, and shells in the folder do not count.
 */
export function isClusterProcess(pid: number, cluster: ClusterIdentity): boolean {
  if (!HAS_PROC) return ps('-p', String(pid)).some(line => line.includes(cluster.clusterName))
  if (read(`/proc/${pid}/comm`) !== 'postgres\n' || isForeignProc()) return false
  try {
    // Paths differ between mounts of the same folder.
    const [cwd, data] = [statSync(`/proc/${pid}/cwd`), statSync(cluster.data)]
    return cwd.ino === data.ino && cwd.dev === data.dev
  } catch (error) {
    // Root without CAP_SYS_PTRACE may not follow the link, but process titles are public.
    return isDenied(error) && read(`/proc/${pid}/cmdline`).includes(cluster.clusterName)
  }
}

/**
 * Returns the pid of a visible process as it sees itself. It differs when the process is in a PID
 * namespace of its own, such as that of a container. Undefined when the process has ended.
 */
export function readOwnPid(pid: number): number | undefined {
  if (!HAS_PROC) return pid
  const numbers = /^NSpid:(.*)$/m
    .exec(read(`/proc/${pid}/status`))?.[1]
    ?.trim()
    .split(/\s+/)
  return numbers && Number(numbers.at(-1))
}

/** Lists the pids of all visible processes of the cluster. */
export function listClusterProcesses(cluster: ClusterIdentity): number[] {
  if (HAS_PROC) {
    if (isForeignProc()) return []
    const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
    return pids.map(Number).filter(pid => isClusterProcess(pid, cluster))
  }
  return ps('-ax')
    .filter(line => line.includes(cluster.clusterName))
    .map(line => Number.parseInt(line, 10))
}

/** Sends a signal to a process. Does nothing when the process is already gone. */
export function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/**
 * Returns true when `/proc` shows another PID namespace. Its numbers would be those of other
 * processes here.
 */
function isForeignProc(): boolean {
  try {
    return readlinkSync('/proc/self') !== String(process.pid)
  } catch {
    return true
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['EACCES', 'EPERM'].includes(`${error.code}`)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // Nothing is known then, and a process must not count as ended.
    if (isOutOfFiles(error)) throw error
    return ''
  }
}

/** Runs ps, for macOS, which has no /proc. Returns lines of "pid command". */
function ps(...selection: string[]): string[] {
  const { stdout, error } = spawnSync('/bin/ps', ['-ww', ...selection, '-o', 'pid=,command='], {
    encoding: 'utf8',
    timeout: 5_000,
  })
  if (isTimeOut(error)) throw error
  return (stdout ?? '').split('\n').filter(line => line.trim() !== '')
}
