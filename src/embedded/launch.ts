import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, fchownSync, fstatSync, openSync, readFileSync, renameSync } from 'node:fs'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { ensureBinaries } from './binaries.ts'
import type { OsUser } from './folders.ts'

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
 * it. It inherits the file `stdin`, and nothing of the environment. It logs to a file, because a
 * pipe would break when this process is killed.
 */
export async function launch(
  { home, log, osUser, cwd, major }: LaunchContext,
  program: 'initdb' | 'postgres',
  args: string[],
  stdin?: number,
): Promise<LaunchedProgram> {
  const bin = join(await ensureBinaries(home, major), 'bin', program)
  rotateLog(log)
  const fd = openSync(log, 'a', 0o600)
  if (osUser) fchownSync(fd, osUser.uid, osUser.gid)
  const start = fstatSync(fd).size
  let ended: string | undefined
  try {
    const child = spawn(bin, args, {
      ...osUser,
      cwd,
      env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/nonexistent' },
      detached: true,
      stdio: [stdin ?? 'ignore', fd, fd],
    })
    child.once('error', error => (ended = error.message))
    child.once('exit', (code, name) => (ended ??= name ? `signal ${name}` : `exit ${code}`))
    child.unref()
    return {
      child,
      ended: () => ended,
      explain: () => `${program}: ${ended}; ${toCause(readFrom(log, start))} (log: ${log})`,
    }
  } finally {
    closeSync(fd)
  }
}

/** Rotates a large log, and keeps one old log. Nothing writes to it before Postgres starts. */
function rotateLog(log: string): void {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0
  if (size > LOG_MAX_BYTES) renameSync(log, `${log}.old`)
}

function readFrom(log: string, start: number): string {
  return readFileSync(log).subarray(start).toString('utf8')
}

function toCause(output: string): string {
  const lines = output.trim().split('\n')
  const relevant = lines.filter(line => /FATAL|PANIC|DETAIL|HINT|error/.test(line))
  return (relevant.length > 0 ? relevant : lines).slice(-3).join(' ')
}
