import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPostgresUser } from '../../../src/database/embedded/folders.ts'
import { sendSignal } from '../../../src/database/embedded/processes.ts'
import { connect, type Sql } from '../../../src/database/sql.ts'
import type { FailoverCluster } from '../../faults/standby.ts'
import { listChildren } from '../leftovers.ts'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'
import { until } from '../until.ts'

/** The ways to lose the leader. `isolated` ends Patroni alone, and `crashed` Postgres alone. */
export const PATRONI_LOSSES = ['killed', 'isolated', 'frozen', 'crashed'] as const
type Loss = (typeof PATRONI_LOSSES)[number]

/** A machine with Patroni and its Postgres. */
interface Member {
  name: string
  port: number
  restPort: number
  data: string
  child: ChildProcess | undefined
}

const DOCS = join(import.meta.dirname, '../../../docs/scaling.md')
const START_MS = 120_000

/**
 * Starts etcd and three members of Patroni on loopback, set up as docs/scaling.md says, with an
 * empty database for Tidings. Needs Debian's packages that are named there; PATRONI names another
 * program.
 */
export async function startPatroni(): Promise<FailoverCluster<Loss>> {
  const home = makeFolder()
  const osUser = findPostgresUser(home)
  const own = (path: string) => osUser && chownSync(path, osUser.uid, osUser.gid)
  own(home)
  const docs = readFileSync(DOCS, 'utf8')
  const recipe = /```yaml\n(scope: tidings\n[^]*?)```/.exec(docs)![1]!
  const statements = /```sql\n(create role tidings [^]*?)```/.exec(docs)![1]!.split(';\n')
  const program = process.env['PATRONI'] ?? 'patroni'
  const isOld = isOlder(execFileSync(program, ['--version'], { encoding: 'utf8' }))
  const options = {
    ...osUser,
    env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8', HOME: home },
    cwd: home,
  }

  function run(name: string, file: string, args: readonly string[]): ChildProcess {
    const log = openSync(join(home, `${name}.log`), 'a')
    const child = spawn(file, args, { ...options, detached: true, stdio: ['ignore', log, log] })
    closeSync(log)
    return child
  }

  const [etcdPort, peerPort] = [await findFreePort(), await findFreePort()]
  const etcd = run('etcd', 'etcd', [
    ...['--name', 'etcd1', '--data-dir', join(home, 'etcd')],
    ...['listen-client-urls', 'advertise-client-urls'].flatMap(name => [
      `--${name}`,
      `http://127.0.0.1:${etcdPort}`,
    ]),
    ...['listen-peer-urls', 'initial-advertise-peer-urls'].flatMap(name => [
      `--${name}`,
      `http://127.0.0.1:${peerPort}`,
    ]),
    ...(isOld ? ['--enable-v2'] : []),
    ...['--initial-cluster', `etcd1=http://127.0.0.1:${peerPort}`],
  ])

  const members: Member[] = []
  for (const name of ['db1', 'db2', 'db3'])
    members.push({
      name,
      port: await findFreePort(),
      restPort: await findFreePort(),
      data: join(home, name),
      child: undefined,
    })

  function start(member: Member): void {
    const { name, port, restPort, data } = member
    const file = join(home, `${name}.yml`)
    const sockets = join(home, `${name}-sockets`)
    mkdirSync(sockets, { recursive: true })
    own(sockets)
    const text = recipe
      .replace('etcd3:', isOld ? 'etcd:' : 'etcd3:')
      .replace('name: db1', `name: ${name}`)
      .replaceAll('10.0.0.1:8008', `127.0.0.1:${restPort}`)
      .replaceAll(/\[10\.0\.0\.1:2379,.*\]/g, `[127.0.0.1:${etcdPort}]`)
      .replaceAll('10.0.0.1:5432', `127.0.0.1:${port}`)
      .replace(/data_dir: .*/, `data_dir: ${data}`)
      .replaceAll('10.0.0.0/24', '127.0.0.0/8')
    // Small, and in a place that this user may write to.
    const parameters = `  pgpass: ${join(home, name)}.pgpass\n  parameters: { unix_socket_directories: '${sockets}', shared_buffers: 64MB }\n`
    writeFileSync(file, text + parameters)
    own(file)
    member.child = run(name, program, [file])
  }

  const toUrl = (users: string, some: readonly Member[], database: string) =>
    `postgres://${users}@${some.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`

  async function asSuperuser<Result>(member: Member, work: (sql: Sql) => Promise<Result>) {
    const sql = connect(toUrl('postgres:superuser-secret', [member], 'postgres'), {
      name: 'admin',
      max: 1,
    })
    try {
      return await Promise.race([
        work(sql),
        sleep(2_000).then(() => Promise.reject(new Error(`${member.name} does not respond`))),
      ])
    } finally {
      void sql.end({ timeout: 0 }).catch(() => {})
    }
  }

  /** Resolves to the time when a primary was started; undefined for others. */
  const startOfPrimary = (member: Member) =>
    asSuperuser(member, async sql => {
      const [row] = await sql<[{ start: string | null }]>`
        select case when not pg_is_in_recovery() then pg_postmaster_start_time()::text end as start
      `
      return row.start ?? undefined
    }).catch(() => undefined)

  interface MemberState {
    name: string
    role: string
    state: string
    lag?: number | string
  }
  /** Returns what Patroni says of its members. */
  async function listStates(): Promise<MemberState[]> {
    for (const { restPort } of members) {
      const response = await fetch(`http://127.0.0.1:${restPort}/cluster`, {
        signal: AbortSignal.timeout(2_000),
      }).catch(() => undefined)
      if (response) return ((await response.json()) as { members?: MemberState[] }).members ?? []
    }
    return []
  }

  async function untilWhole(): Promise<void> {
    let states: MemberState[] = []
    const isWhole = async () => {
      await sleep(200)
      states = await listStates()
      return (
        states.filter(({ role }) => role === 'leader').length === 1 &&
        states.filter(({ role }) => role === 'sync_standby').length === 1 &&
        states.length === members.length &&
        states.every(({ role, state, lag }) =>
          role === 'leader'
            ? state === 'running'
            : /^(running|streaming)$/.test(state) && lag === 0,
        )
      )
    }
    await until(isWhole, START_MS).catch((error: unknown) => {
      showLogs()
      throw new Error(`The cluster is not whole: ${JSON.stringify(states)}`, { cause: error })
    })
    for (const member of members) if (await startOfPrimary(member)) leader = member
  }

  function signal({ child, data }: Member, whose: 'patroni' | 'postgres', name: NodeJS.Signals) {
    const first = whose === 'patroni' ? child?.pid : readPostmaster(data)
    const pids =
      first === undefined ? [] : whose === 'patroni' ? [first] : [first, ...listChildren(first)]
    for (const pid of pids) sendSignal(pid, name)
  }

  function showLogs(): void {
    for (const name of readdirSync(home).filter(name => name.endsWith('.log')))
      console.error(name, readFileSync(join(home, name), 'utf8').slice(-4_000))
  }

  let leader = members[0]!
  let lost: { member: Member; loss: Loss; start: string | undefined } | undefined
  try {
    start(leader)
    await until(async () => (await startOfPrimary(leader)) !== undefined, START_MS)
    for (const member of members) if (member !== leader) start(member)
    await untilWhole()
    await asSuperuser(leader, async sql => {
      for (const statement of statements) if (statement.trim()) await sql.unsafe(statement)
    })
  } catch (error) {
    showLogs()
    await stop()
    throw error
  }

  async function stop(): Promise<void> {
    for (const member of members) {
      signal(member, 'patroni', 'SIGKILL')
      signal(member, 'postgres', 'SIGKILL')
    }
    etcd.kill('SIGKILL')
    if (etcd.exitCode === null && etcd.signalCode === null) await once(etcd, 'exit')
  }

  return {
    url: toUrl('tidings:secret', members, 'tidings') + '?target_session_attrs=read-write',
    async restore() {
      if (lost) {
        const { member, loss } = lost
        lost = undefined
        if (loss === 'frozen')
          for (const whose of ['postgres', 'patroni'] as const) signal(member, whose, 'SIGCONT')
        else if (loss !== 'crashed') start(member)
      }
      await untilWhole()
    },
    async lose(loss) {
      lost = { member: leader, loss, start: await startOfPrimary(leader) }
      if (loss === 'frozen')
        for (const whose of ['patroni', 'postgres'] as const) signal(leader, whose, 'SIGSTOP')
      if (loss === 'killed' || loss === 'isolated') signal(leader, 'patroni', 'SIGKILL')
      if (loss === 'killed' || loss === 'crashed') signal(leader, 'postgres', 'SIGKILL')
    },
    async promote() {
      await until(async () => {
        const starts = await Promise.all(members.map(startOfPrimary))
        return members.some(
          (member, nth) =>
            starts[nth] !== undefined && (member !== lost?.member || starts[nth] !== lost.start),
        )
      }, START_MS)
    },
    [Symbol.asyncDispose]: stop,
  }
}

/** Returns true for a version before 3.1, which works with the older interface of etcd. */
function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = (/\d+\.\d+/.exec(version)?.[0] ?? '').split('.').map(Number)
  return major < 3 || (major === 3 && minor < 1)
}

function readPostmaster(data: string): number | undefined {
  try {
    return Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
  } catch {
    return undefined
  }
}
