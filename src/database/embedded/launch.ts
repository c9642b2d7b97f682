import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, fchownSync, fstatSync, openSync, readFileSync, renameSync } from 'node:fs'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBinaries } from './binaries.ts'
import type { OsUser } from './folders.ts'
import { DAMAGED } from '../../base/errors.ts'
import { explainOutput, explainSystemError } from '../../base/system-error.ts'

/** The folders and the OS user for a program of Postgres. Its binaries are in `home`. */
export type LaunchContext = {
  home: string
  log: string
  cwd: string
  osUser: OsUser | undefined
  /** The major version of the data. Undefined without data: the bundled version is used. */
  major: string | undefined
}

export type LaunchedProgram = {
  child: ChildProcess
  /** Returns `exit 0`, `signal SIGKILL` or an error of spawn. Undefined while it runs. */
  ended(): string | undefined
  /** Describes why the program ended, with lines from its log. */
  explain(): string
}

const LOG_MAX_BYTES = 10 * 1024 * 1024

/**
 * Starts a program of Postgres in its own session, so that Ctrl-C at the terminal does not reach
 * it. It inherits the file `stdin`, and of the environment only `env`. It logs to a file, because a
 * pipe would break when this process is killed.
 */
export async function launch(
  { home, log, osUser, cwd, major }: LaunchContext,
  program: 'initdb' | 'postgres',
  args: string[],
  { stdin, env }: { stdin?: number; env?: Record<string, string> | undefined } = {},
): Promise<LaunchedProgram> {
  const bin = join(await ensureBinaries(home, major), 'bin', program)
  rotateLog(log)
  const fd = openSync(log, 'a', 0o600)
  if (osUser) fchownSync(fd, osUser.uid, osUser.gid)
  const start = fstatSync(fd).size
  let ended: string | undefined
  let failure: string | undefined
  try {
    const child = spawn(bin, args, {
      ...osUser,
      cwd,
      env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/nonexistent', ...env },
      detached: true,
      stdio: [stdin ?? 'ignore', fd, fd],
    })
    child.once('error', (error: NodeJS.ErrnoException) => {
      failure = explainSpawn(error, home)
      ended = error.message
    })
    child.once('exit', (code, name) => (ended ??= name ? `signal ${name}` : `exit ${code}`))
    child.unref()
    return {
      child,
      ended: () => ended,
      explain() {
        if (failure !== undefined) return failure
        const output = readFrom(log, start)
        const remedy =
          explainOutput(output, home) ??
          (program === 'postgres' && DAMAGE.test(output) ? DAMAGED : undefined)
        return `${program}: ${ended}; ${toCause(output)} (log: ${log})${remedy ? `\n${remedy}` : ''}`
      },
    }
  } finally {
    closeSync(fd)
  }
}

/** Explains why one of our own copies, which every user may run, does not start. */
function explainSpawn(error: NodeJS.ErrnoException, home: string): string | undefined {
  switch (error.code) {
    case 'EACCES':
      return `The disk of ${home} runs no programs, and Postgres is kept there. Mount the disk without noexec, or choose another DATA_DIR.`
    case 'ENOENT':
      return 'The embedded Postgres needs glibc, which this system does not have. Use an image of Debian, or set DATABASE_URL.'
    default:
      return explainSystemError(error)
  }
}

/** Rotates a large log, and keeps one old log. Nothing writes to it before Postgres starts. */
function rotateLog(log: string): void {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  if (size > LOG_MAX_BYTES) renameSync(log, `${log}.old`)
}

/** Says that Postgres does not start because of its files. */
const DAMAGE =
  /PANIC|valid data directory|could not (find the database system|access|load|open|read)|control file|status of transaction|invalid (page|checkpoint|record)|corrupt/

function readFrom(log: string, start: number): string {
  return readFileSync(log).subarray(start).toString('utf8')
}

function toCause(output: string): string {
  const lines = output.trim().split('\n')
  // Postgres advises to run initdb, which would be the end of the data.
  const relevant = lines.filter(line => /FATAL|PANIC|DETAIL|HINT(?!.*initdb)|error/.test(line))
  return (relevant.length > 0 ? relevant : lines).slice(-3).join(' ')
}
