import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

const ESTABLISHED = '01'

/** Which of the processes have a TCP connection one end of which is `port`. Linux alone. */
export function listConnected(pids: readonly number[], port: number): number[] {
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

/** What a process has open; nothing where it has ended. */
function listFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).flatMap(name => {
      try {
        return [readlinkSync(`${folder}/${name}`)]
      } catch {
        return [] // Closed meanwhile.
      }
    })
  } catch {
    return []
  }
}
