import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The major version of Postgres that made the files; undefined where that cannot be told, which is left to Postgres. */
export function readMajor(data: string): string | undefined {
  try {
    return /^\d+$/.exec(readFileSync(join(data, 'PG_VERSION'), 'utf8').trim())?.[0]
  } catch {
    return undefined
  }
}

/** Of `18.4.0-beta.17` the 18. */
export function toMajor(version: string): string {
  return version.slice(0, version.indexOf('.'))
}

/** What the binaries in `folder` say that they are; undefined where they do not run. */
export function askMajor(folder: string): string | undefined {
  const postgres = join(folder, 'bin', 'postgres')
  const { stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8', timeout: 5_000 })
  return /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
}

interface Majors {
  /** Of the data. */
  major: string
  /** Of this program. */
  carried: string
}

export function toNewerMessage(home: string, { major, carried }: Majors): string {
  const data = join(home, 'data')
  const old = `${data}.old-${carried}`
  return [
    `The data in ${home} is that of PostgreSQL ${major}, and this Tidings carries ${carried}, which cannot read it.`,
    'Nothing was changed. Do one of these:',
    '  start the newer Tidings again',
    ...(existsSync(old)
      ? [
          `  mv ${data} ${data}-${major} && mv ${old} ${data}     go back to what was there before the upgrade,`,
          '    without what has come in since',
        ]
      : []),
    '  tidings restore tidings.backup     into a new DATA_DIR, from a backup of before the upgrade',
  ].join('\n')
}

export function toMissingMessage(
  home: string,
  { major, carried, name }: Majors & { name: string },
): string {
  return [
    `The data in ${home} is that of PostgreSQL ${major}, this Tidings carries ${carried}, and there is no PostgreSQL ${major} here that could hand it over.`,
    'Nothing was changed. Do one of these, and start again:',
    `  start the Tidings that ran until now once more     it leaves its PostgreSQL ${major} in ${home}`,
    `  ln -s /usr/lib/postgresql/${major} ${home}/${major}.0     with that of the system (Debian: apt install postgresql-${major})`,
    `  mv node_modules/${name}/native ${home}/${major}.0     with that of npm: npm install ${name}@${major}.…`,
    'Or take the way by a backup: `tidings backup` with the Tidings that ran until now, then `tidings restore` with this',
    'one into a new DATA_DIR.',
  ].join('\n')
}
