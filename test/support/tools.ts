import { spawnSync } from 'node:child_process'

/**
 * Returns whether a test that needs this command runs. In CI it always runs, and fails without the
 * command, because `.ci/run` installs every tool.
 */
export function hasTool(command: string): boolean {
  return Boolean(process.env['CI']) || spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
}
