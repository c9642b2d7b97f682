import { spawnSync } from 'node:child_process'
import { networkInterfaces } from 'node:os'

/** Returns whether a test that needs this command runs. */
export function hasTool(command: string): boolean {
  if (process.env['CI']) return true
  // A command may be a path with spaces.
  if (spawnSync('sh', ['-c', 'command -v "$1"', 'sh', command]).status === 0) return true
  leaveOut(`tests that need ${command}`)
  return false
}

/** Returns whether this machine can listen on ::1. In CI it must: the tests fail without it. */
export function hasIpv6(): boolean {
  const addresses = Object.values(networkInterfaces()).flatMap(list => list ?? [])
  if (process.env['CI'] || addresses.some(({ address }) => address === '::1')) return true
  leaveOut('tests that need the address ::1')
  return false
}

/** Returns whether a test can give files to other users. It leaves this part out otherwise. */
export function canGiveFiles(): boolean {
  if (process.getuid?.() === 0) return true
  leaveOut('parts of tests that only root can run: the owners of files')
  return false
}

/** Names what is left out. The runner collects these lines. */
function leaveOut(what: string): void {
  console.warn(`Left out: ${what}`)
}
