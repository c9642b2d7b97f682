import { spawnSync } from 'node:child_process'
import { chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectSocket, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseUrl } from '../../base/database-url.ts'
import { once } from '../../base/functions.ts'
import { logger } from '../../base/log.ts'
import { isTimeOut } from '../../base/system-error.ts'
import { connect } from '../sql.ts'
import type { Cluster } from './cluster.ts'

// The lock of a cluster is sure among the processes of one kernel. Disks that machines share, such
// as NFS, have locks that other machines do not see. So Postgres also writes a file every second. A
// machine that finds the file of another boot waits, and starts only if it does not change.

/** The machine that last used a cluster. */
interface LastUse {
  /** Differs between machines, and between two boots of one. Empty when unknown. */
  boot: string
  host: string
}

type Place = Pick<Cluster, 'data' | 'osUser'>

const FILE = 'liveness'
/** Ten times the period in which Postgres writes the file. */
const SILENCE_MS = 10_000
/** The time in which two machines that claim the same cluster see each other's file. */
const CLAIM_MS = 2_000
const POLL_MS = 100
/** The time after which the file of a running Postgres counts as abandoned. */
const STALE_MS = 5_000
const START_MS = 5_000

const log = logger('db')

/** Returns the machine that last used the cluster. Undefined if Postgres was stopped there. */
export function readLivenessFile(data: string): LastUse | undefined {
  const text = readText(data)
  if (text === undefined) return undefined
  try {
    const { boot, host } = JSON.parse(text) as Partial<LastUse>
    if (typeof boot === 'string' && typeof host === 'string') return { boot, host }
  } catch {
    // A power failure can truncate the file.
  }
  return { boot: '', host: 'another machine' }
}

/** Returns true unless another machine, or an earlier boot of this one, has used the cluster. */
export function isOwnBoot({ boot }: LastUse): boolean {
  return boot !== '' && boot === readBoot()
}

/**
 * Makes this machine the user of a cluster that is locked. Waits if another boot has left its file.
 * Throws when a server on another machine shows signs of life.
 */
export async function claimCluster(place: Place): Promise<void> {
  const { data } = place
  const last = readLivenessFile(data)
  if (last && isOwnBoot(last)) return writeLivenessFile(place)
  const refuseIfChanging = async (ms: number) => {
    if (await isChanging(data, ms)) throw new Error(toTakenMessage(data, readLivenessFile(data)))
  }
  if (last) {
    log.warning(
      '{data} was last used on {host}, and not stopped there. Waiting {seconds} s for a sign of life from there.',
      { data, host: last.host, seconds: SILENCE_MS / 1000 },
    )
    await refuseIfChanging(SILENCE_MS)
    rmSync(join(data, FILE), { force: true })
  }
  try {
    writeLivenessFile(place, 'wx')
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
    throw new Error(toTakenMessage(data, readLivenessFile(data)), { cause: error })
  }
  if (last) await refuseIfChanging(CLAIM_MS)
}

/** Writes the file from this process, while Postgres is not ready to do it. */
export function writeLivenessFile({ data, osUser }: Place, flag: 'w' | 'wx' = 'w'): void {
  const file = join(data, FILE)
  writeFileSync(file, `${toPrefix()}${new Date().toISOString()}"}\n`, { flag, mode: 0o600 })
  if (osUser) chownSync(file, osUser.uid, osUser.gid)
}

/** Removes the file after Postgres was stopped. The next start then waits for nobody. */
export function removeLivenessFile(data: string): void {
  if (readLivenessFile(data)?.boot === readBoot()) rmSync(join(data, FILE), { force: true })
}

/**
 * Makes Postgres write the file every second until it stops. Nobody has to stay connected, so the
 * file tells of a Postgres that has outlived its server, too. `url` is that of the superuser.
 */
export async function startLivenessFile(data: string, url: string): Promise<void> {
  const { path } = parseUrl(url)
  if (path === undefined) return
  const before = readText(data)
  const sockets: Socket[] = []
  const open = () => {
    const socket = connectSocket({ path })
    sockets.push(socket)
    return socket
  }
  const sql = connect(url, {
    name: 'liveness',
    max: 1,
    settings: { statement_timeout: 0 },
    openSocket: async () => open(),
  })
  let isOver = false
  const end = () => void (isOver = true)
  sql.unsafe(toLoop()).simple().then(end, end)
  const deadline = performance.now() + START_MS
  while (!isOver && readText(data) === before && performance.now() < deadline) await sleep(5)
  // The statement goes on, because Postgres does not notice the end of the connection meanwhile.
  const ended = sql.end({ timeout: 0 })
  for (const socket of sockets) socket.destroy()
  await ended
}

/** Returns a function that tells whether the file of a running Postgres is still written. */
export function watchLivenessFile(data: string): () => 'alive' | 'ended' | 'taken over' {
  let last = readText(data)
  let changedMs = performance.now()
  return () => {
    const text = readText(data)
    if (text !== last) {
      last = text
      changedMs = performance.now()
    }
    const { boot = '' } = readLivenessFile(data) ?? {}
    if (boot !== '' && boot !== readBoot()) return 'taken over'
    if (performance.now() - changedMs < STALE_MS) return 'alive'
    changedMs = performance.now()
    return 'ended'
  }
}

/** Returns the text of the file up to the time. */
function toPrefix(): string {
  return `${toBoot()},"host":"${hostname().replace(/[^\w.-]/g, '')}","at":"`
}

function toBoot(): string {
  return `{"boot":"${readBoot()}"`
}

/** The loop ends by itself when another machine has claimed the cluster, or when there are two. */
function toLoop(): string {
  return `
    do $liveness$
    declare
      found text;
    begin
      loop
        found := coalesce(pg_read_file('${FILE}', true), '');
        exit when found <> '' and not starts_with(found, ${toLiteral(toBoot())});
        exit when exists (
          select from pg_stat_activity
          where application_name = current_setting('application_name')
            and state = 'active' and pid < pg_backend_pid()
        );
        execute format(
          'copy (select %L) to %L',
          ${toLiteral(toPrefix())} || clock_timestamp() || '"}',
          current_setting('data_directory') || '/${FILE}'
        );
        commit;
        perform pg_sleep(1);
      end loop;
    end $liveness$`
}

function toLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** Returns true if the file changes within `ms`. Its removal is the clean end of its writer. */
async function isChanging(data: string, ms: number): Promise<boolean> {
  const first = readText(data)
  const deadline = performance.now() + ms
  while (performance.now() < deadline) {
    await sleep(POLL_MS)
    const text = readText(data)
    if (text === undefined) return false
    if (text !== first) return true
  }
  return false
}

function readText(data: string): string | undefined {
  try {
    return readFileSync(join(data, FILE), 'utf8')
  } catch {
    return undefined
  }
}

/** Returns the identity of this boot of this machine. Empty where there is none. */
const readBoot = once((): string => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    const { stdout, error } = spawnSync('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid'], {
      encoding: 'utf8',
      timeout: 5_000,
    })
    if (isTimeOut(error)) throw error
    return (stdout ?? '').trim()
  }
})

/** Says what to do about a server on another machine. */
export function toTakenMessage(data: string, user: LastUse | undefined): string {
  const host = user?.host ?? 'another machine'
  return `A server on ${host} uses ${data}, which both machines can write. Run the command there, or stop that server first.`
}
