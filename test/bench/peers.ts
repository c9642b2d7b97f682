import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const HERE = import.meta.dir

/** Installs the reference systems unless they are installed. Throws if that fails. */
export function installPeers(): void {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const isThere = (name: string) => existsSync(join(HERE, 'node_modules', name))
  if (Object.keys(dependencies).every(isThere)) return
  // Exact versions of the peers are enough: what they depend on is what their users get.
  const { status } = spawnSync(process.execPath, ['install', '--no-save', '--silent'], {
    cwd: HERE,
    stdio: 'inherit',
  })
  if (status === 0) return
  throw new Error(
    'The reference systems could not be installed. Check that the registry is reachable.',
  )
}

/**
 * Returns the Node for the reference systems, which need a recent one: installed with them, or that
 * of the system.
 */
export function findNode(): string {
  const installed = join(HERE, `node_modules/node-linux-${process.arch}/bin/node`)
  return existsSync(installed) ? installed : 'node'
}
