import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const HERE = import.meta.dir

/** Installs what the benches compare with, where it is not there yet. Throws where it cannot be. */
export function installPeers(): void {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const isThere = (name: string) => existsSync(join(HERE, 'node_modules', name))
  if (Object.keys(dependencies).every(isThere)) return
  const { status } = spawnSync(process.execPath, ['install', '--frozen-lockfile', '--silent'], {
    cwd: HERE,
    stdio: 'inherit',
  })
  if (status === 0) return
  throw new Error('What to compare with could not be installed: is the registry reachable?')
}

/** The Node for peers that ask for a newer one than systems have: installed with them, or the one of the system. */
export function findNode(): string {
  const installed = join(HERE, `node_modules/node-linux-${process.arch}/bin/node`)
  return existsSync(installed) ? installed : 'node'
}
