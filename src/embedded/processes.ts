import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Identifies the processes of one cluster by working directory, or else by process title. */
export type ClusterIdentity = { data: string; clusterName: string }

const HAS_PROC = existsSync('/proc/self/cwd')

/**
 * Returns true when `pid` is a running Postgres process of the cluster. Zombies, other programs
 * with a reused pid, and shells in the folder do not count.
 */
export function isClusterProcess(pid: number, cluster: ClusterIdentity): boolean {
  if (!HAS_PROC) return ps('-p', String(pid)).some(line => line.includes(cluster.clusterName))
  if (read(`/proc/${pid}/comm`) !== 'postgres\n') return false
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === cluster.data
  } catch (error) {
    // Root without CAP_SYS_PTRACE may not read the link, but process titles are public.
    return isDenied(error) && read(`/proc/${pid}/cmdline`).includes(cluster.clusterName)
  }
}

/** Lists the pids of all running processes of the cluster. */
export function listClusterProcesses(cluster: ClusterIdentity): number[] {
  if (HAS_PROC) {
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

function isDenied(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['EACCES', 'EPERM'].includes(`${error.code}`)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Runs ps, for macOS, which has no /proc. Returns lines of "pid command". */
function ps(...selection: string[]): string[] {
  const { stdout } = spawnSync('/bin/ps', ['-ww', ...selection, '-o', 'pid=,command='], {
    encoding: 'utf8',
  })
  return (stdout ?? '').split('\n').filter(line => line.trim() !== '')
}
