import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const HERE = import.meta.dir

/** How parse-server.mjs is asked to create an object, and what a process of it runs with. */
export const PARSE_PATH = '/classes/Event'
export const PARSE_HEADERS = {
  'X-Parse-Application-Id': 'bench',
  'X-Parse-REST-API-Key': 'bench-rest',
}
// Express asks for the first one. The other keeps it from making a folder of logs where it stands.
export const PARSE_ENV = { NODE_ENV: 'production', PARSE_SERVER_LOGS_FOLDER: 'null' }

/** Has the packages that a bench compares with at hand, installed the first time that they are asked for. */
export function installPeers(...names: string[]): void {
  if (names.every(name => existsSync(join(HERE, 'node_modules', name)))) return
  const install = ['install', '--frozen-lockfile', '--silent']
  const { status } = spawnSync('bun', install, { cwd: HERE, stdio: 'inherit' })
  if (status !== 0)
    throw new Error(
      `There is nothing to compare with: ${names.join(' and ')} could not be installed`,
    )
}
