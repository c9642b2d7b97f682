import { readFileSync } from 'node:fs'
import {
  type ClusterIdentity,
  listClusterProcesses,
} from '../../src/database/embedded/processes.ts'

/**
 * Returns the postmasters of a cluster, in every container: its processes that no other one has
 * started, and whose title is a command line.
 */
export function listPostmasters(cluster: ClusterIdentity): number[] {
  const pids = listClusterProcesses(cluster)
  return pids.filter(pid => {
    const parent = Number(/^PPid:\s*(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1])
    const title = read(`/proc/${pid}/cmdline`)
    return title !== '' && !title.startsWith('postgres: ') && !pids.includes(parent)
  })
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
