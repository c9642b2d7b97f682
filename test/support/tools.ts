import { spawnSync } from 'node:child_process'

/**
 * Returns whether a test that needs this command runs. In CI it always runs, and fails without the
 * command, because `.ci/run` installs every tool.
 */
export function hasTool(command: string): boolean {
  if (process.env['CI'] || spawnSync('sh', ['-c', `command -v ${command}`]).status === 0)
    return true
  // The runner collects these lines.
  console.warn(`Left out: tests that need ${command}`)
  return false
}
