import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

const ESTABLISHED = '01'

/** Returns the processes with a TCP connection that has one end at `port`. Linux only. */
export function listConnectedProcesses(pids: readonly number[], port: number): number[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = new Set<string>()
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    if (!existsSync(file)) continue
    for (const line of readFileSync(file, 'utf8').split('\n').slice(1)) {
      const [, local = '', remote = '', state, , , , , , inode] = line.trim().split(/\s+/)
      const isWanted = local.endsWith(end) || remote.endsWith(end)
      if (isWanted && state === ESTABLISHED) sockets.add(`socket:[${inode}]`)
    }
  }
  return pids.filter(pid => listFiles(pid).some(file => sockets.has(file)))
}

/** Returns the open files of a process; none if it has ended. */
function listFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).flatMap(name => {
      try {
        return [readlinkSync(`${folder}/${name}`)]
      } catch {
        return [] // The file was closed meanwhile.
      }
    })
  } catch {
    return []
  }
}
