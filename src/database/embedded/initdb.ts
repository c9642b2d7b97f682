import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OsUser } from './folders.ts'
import { launch, type LaunchContext } from './launch.ts'

/** Runs initdb to its end. Throws an error that says what to do on failure. */
export async function runInitdb(place: LaunchContext, args: string[]): Promise<void> {
  refuseShellCharacters(place.home)
  const problem = await tryInitdb(place, args)
  if (problem === undefined) return
  if (!isUnnamed(problem)) throw new Error(`The database could not be created. ${problem}`)
  const wrapper = findWrapper()
  if (wrapper === undefined) throw new Error(toUnnamedMessage(toUser(place)))
  const again = await runNamed(place, wrapper, env => tryInitdb(place, args, env))
  if (again !== undefined) throw new Error(`The database could not be created. ${again}`)
}

/** Returns why it failed. It then has created nothing, if its user has no name. */
async function tryInitdb(
  place: LaunchContext,
  args: string[],
  env?: Record<string, string>,
): Promise<string | undefined> {
  const initdb = await launch(place, 'initdb', args, { env })
  while (!initdb.ended()) await sleep(10)
  return initdb.ended() === 'exit 0' ? undefined : initdb.explain()
}

function isUnnamed(problem: string): boolean {
  return problem.includes('user does not exist')
}

/**
 * Runs `work` with an environment in which the user of Postgres has a name. Containers often run as
 * a uid without one. Only initdb asks for it.
 */
async function runNamed<Result>(
  place: LaunchContext,
  wrapper: string,
  work: (env: Record<string, string>) => Promise<Result>,
): Promise<Result> {
  const { uid, gid } = toUser(place)
  const [users, groups] = [join(place.home, 'passwd'), join(place.home, 'group')]
  try {
    writePublic(users, `tidings:x:${uid}:${gid}:Tidings:/:/bin/false\n`)
    writePublic(groups, `tidings:x:${gid}:\n`)
    return await work({
      LD_PRELOAD: wrapper,
      NSS_WRAPPER_PASSWD: users,
      NSS_WRAPPER_GROUP: groups,
    })
  } finally {
    for (const file of [users, groups]) rmSync(file, { force: true })
  }
}

/** Writes a new file that everybody may read. It follows no link, which another user could make. */
function writePublic(file: string, text: string): void {
  rmSync(file, { force: true })
  writeFileSync(file, text, { flag: 'wx' })
  chmodSync(file, 0o644)
}

/** Finds the library libnss_wrapper, where Debian, Red Hat, Alpine and Arch install it. */
export function findWrapper(): string | undefined {
  const folders = ['/usr/lib', '/usr/lib64', '/usr/local/lib']
  return folders
    .filter(folder => existsSync(folder))
    .flatMap(folder => [folder, ...listFolders(folder)])
    .map(folder => join(folder, 'libnss_wrapper.so'))
    .find(file => existsSync(file))
}

/** Lists the folders of architectures, such as x86_64-linux-gnu. */
function listFolders(folder: string): string[] {
  const names = readdirSync(folder).filter(name => /-linux-(gnu|musl)/.test(name))
  return names.map(name => join(folder, name))
}

function toUser({ osUser }: LaunchContext): OsUser {
  return osUser ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
}

function toUnnamedMessage({ uid }: OsUser): string {
  return [
    `Postgres needs a name for its user (uid ${uid}), and the system has none. Nothing was created. Do one of these:`,
    '  Install libnss_wrapper, with which Tidings provides a name (Debian: apt install libnss-wrapper).',
    '  Add an entry for the uid to /etc/passwd, or run Tidings as a user that has one.',
    '  Use your own Postgres:  DATABASE_URL=postgres://user:password@host:5432/database',
  ].join('\n')
}

/** initdb puts the path of its programs between double quotes, in a command of a shell. */
function refuseShellCharacters(home: string): void {
  const [found] = /["$`\\\n]/.exec(home) ?? []
  if (found === undefined) return
  throw new Error(
    `initdb of Postgres cannot work in ${home}, because the path contains ${found === '\n' ? 'a line break' : found}. Choose another DATA_DIR.`,
  )
}
