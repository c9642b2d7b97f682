import { spawnSync } from 'node:child_process'

/**
 * Returns whether a test that needs this command runs. In CI it always runs, and fails without the
 * command, because `.ci/run` installs every tool.
 */
export function hasTool(command: string): boolean {
  if (process.env['CI']) return true
  // A command may be a path with spaces.
  if (spawnSync('sh', ['-c', 'command -v "$1"', 'sh', command]).status === 0) return true
  // The runner collects these lines.
  console.warn(`Left out: tests that need ${command}`)
  return false
}
