import { randomUUID } from 'node:crypto'
import { hasOwner } from '../../access/sign-in/owners.ts'
import {
  FUNCTIONS_NAME,
  findSchemaProblem,
  hasOtherFunctions,
  listMigrations,
} from '../../database/migrate.ts'
import { MAX_FOUND } from '../../log/events/logs-ahead.ts'
import { readIndexLag } from '../../log/events/search-index.ts'
import { connect, type Sql } from '../../database/sql.ts'
import {
  findCollationProblem,
  findDatabaseProblem,
  findWriteProblem,
} from '../../database/requirements.ts'
import { VERSION } from '../../base/version.ts'
import { toReason } from '../../base/errors.ts'
import { withTimeout } from '../../base/functions.ts'
import { failed, ok, warning, type Finding } from './finding.ts'
import { findSecretsProblem, type SecretSource } from '../../database/secrets/open-secrets.ts'
import type { Config } from '../../base/config.ts'
import { describeRefusal, listRefusingServices } from '../../delivery/push/refusing-services.ts'
import { findVapidSubject } from '../../delivery/push/vapid.ts'

const MAX_SKEW_S = 5
const NOTIFY_TIMEOUT_MS = 3_000

/** Checks the schema, the clock and the servers of the database, and that an owner exists. */
export async function checkDatabase(
  sql: Sql,
  { kind, port, trustsClock = false }: { kind: string; port: number; trustsClock?: boolean },
): Promise<{ findings: Finding[]; isCurrent: boolean }> {
  const [row] = await sql<[{ version: string }]>`
    select current_setting('server_version') as version
  `
  const problem = await findDatabaseProblem(sql)
  const collationProblem = problem === undefined ? await findCollationProblem(sql) : undefined
  const pending = (await listMigrations(sql))
    .filter(({ isApplied }) => !isApplied)
    .map(({ name }) => name)
  if (await hasOtherFunctions(sql)) pending.push(FUNCTIONS_NAME)
  const isCurrent = (await findSchemaProblem(sql)) === undefined
  return {
    isCurrent,
    findings: [
      problem === undefined
        ? ok('database', `${kind} PostgreSQL ${row.version}`)
        : failed('database', problem),
      ...(collationProblem === undefined ? [] : [warning('collation', collationProblem)]),
      pending.length === 0
        ? ok('migrations', 'Up to date')
        : warning('migrations', `${pending.join(', ')} will be applied at the next start.`),
      await checkClock(sql),
      ...(isCurrent
        ? [
            await checkServers(sql, port),
            await checkWrites(sql),
            ...(await checkClockJump(sql, trustsClock)),
            await checkOwner(sql),
          ]
        : []),
    ],
  }
}

/** Compares both clocks. Requires an open connection: the time to open one would count as skew. */
async function checkClock(sql: Sql): Promise<Finding> {
  const [{ skew }] = await sql<[{ skew: number }]>`
    select abs(extract(epoch from clock_timestamp() - ${new Date()}))::float8 as skew
  `
  return skew <= MAX_SKEW_S
    ? ok('clock', 'Matches the clock of the database')
    : failed(
        'clock',
        `Differs from the clock of the database by ${skew.toFixed(0)} s. Synchronize both with NTP.`,
      )
}

/** Checks that the database stores and commits rows. */
async function checkWrites(sql: Sql): Promise<Finding> {
  const problem = await findWriteProblem(sql)
  return problem === undefined
    ? ok('writes', 'The database stores rows')
    : failed('writes', `${problem}. Events are refused until this ends.`)
}

/** Checks that a server runs on the database, in the version and with the port of this program. */
export async function checkServers(sql: Sql, ownPort: number): Promise<Finding> {
  const rows = await sql<{ version: string; port: string; processes: number }[]>`
    select
      split_part(application_name, ' ', 3) as version, split_part(application_name, ' ', 4) as port,
      count(*)::int as processes
    from pg_stat_activity
    where datname = current_database() and application_name like 'tidings listen %'
    group by version, port
    order by version, port
  `
  const running = rows.map(
    ({ version, port, processes }) =>
      `Tidings ${version}${port && ` on port ${port}`} ` +
      `(${processes === 1 ? '1 process' : `${processes} processes`})`,
  )
  if (running.length === 0) {
    return warning('server', 'No server runs on this installation. Start it with `tidings serve`.')
  }
  const text = `Running: ${running.join(', ')}`
  if (!rows.every(({ version }) => version === VERSION)) {
    const remedy = 'Restart the servers with the same version.'
    return warning('server', `${text}. This command is Tidings ${VERSION}. ${remedy}`)
  }
  // Port 0 stands for any.
  if (ownPort === 0 || rows.some(({ port }) => port === String(ownPort))) return ok('server', text)
  const remedy = 'Run it with the settings of the server, because it checks its own.'
  return warning('server', `${text}. PORT is ${ownPort} for this command. ${remedy}`)
}

/** Reports a recent jump of the database's clock. First forgets it if the clock is trusted. */
async function checkClockJump(sql: Sql, trustsClock: boolean): Promise<Finding[]> {
  if (trustsClock) await sql`update clock set untrusted_until = null`
  const [row] = await sql<{ until: Date }[]>`
    select untrusted_until as until from clock where untrusted_until between now() and now() + interval '1 day'
  `
  if (!row) return []
  const message = `The database's clock jumped forward, no server ran for over 30 days, or an older backup was restored. Nothing is deleted for its age until ${row.until.toISOString()}. If the clock is wrong, correct it before then. If it is right, run \`tidings doctor --trust-clock\`.`
  return [warning('clock', message)]
}

async function checkOwner(sql: Sql): Promise<Finding> {
  return (await hasOwner(sql))
    ? ok('owner', 'An owner can sign in')
    : warning(
        'owner',
        'Nobody can sign in yet. Open the setup link that the server prints at its start, or run `tidings owner create`.',
      )
}

/** Checks that LISTEN receives a NOTIFY from another connection. */
export async function checkListener(sql: Sql, listenUrl: string): Promise<Finding> {
  const check = 'listener'
  const remedy = 'Behind a connection pooler, set DATABASE_DIRECT_URL to the database itself.'
  const channel = `tidings_doctor_${randomUUID().replaceAll('-', '')}`
  const received = Promise.withResolvers<boolean>()
  const listening = connect(listenUrl, {
    name: 'doctor listen',
    max: 1,
    listener: { onNotify: () => received.resolve(true), onClose: () => {} },
  })
  try {
    await listening.unsafe(`listen ${channel}`)
    await sql`select pg_notify(${channel}, 'doctor')`
    return (await withTimeout(NOTIFY_TIMEOUT_MS, received.promise, () => false))
      ? ok(check, 'LISTEN and NOTIFY work')
      : failed(check, `LISTEN receives nothing. ${remedy}`)
  } catch (error) {
    return failed(check, `LISTEN does not work (${toReason(error)}). ${remedy}`)
  } finally {
    await listening.end({ timeout: 1 })
  }
}

/**
 * Checks that the APP_SECRET decrypts the secrets in the database. Returns no finding if the schema
 * is not created yet.
 */
export async function checkSecret(sql: Sql, source: SecretSource): Promise<Finding[]> {
  const [{ is_there }] = await sql<[{ is_there: boolean }]>`
    select to_regclass('sealed_canary') is not null as is_there
  `
  if (!is_there) return []
  const problem = await findSecretsProblem(sql, source)
  return [
    problem === undefined
      ? ok('APP_SECRET', 'Decrypts the secrets in the database')
      : failed('APP_SECRET', problem),
  ]
}

const LATE_S = 60
const VERY_LATE_S = 3_600

/** Checks the pending deliveries, their delay, and the dead letters. */
export async function checkQueue(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<[{ pending: number; late_s: number; dead: number }]>`
    select
      count(*)::int as pending,
      -- Deliveries of a target that waits are due all the time.
      greatest(0, coalesce(extract(epoch from now() - min(o.available_at) filter (
        where not exists (
          select from delivery_targets t
          where t.kind = o.kind and t.id = o.target_id and greatest(t.paused_until, t.single_until) > now()
        )
      )), 0))::int as late_s,
      (
        select count(*)::int from dead_letters where at between now() - interval '1 day' and now()
      ) as dead
    from outbox o
  `
  const { pending, late_s: lateS, dead } = row
  const summary = `${pending} pending deliveries`
  const remedy = 'Check that a server is running, and read its log.'
  const queue =
    lateS <= LATE_S
      ? ok('queue', `${summary}, none overdue`)
      : (lateS <= VERY_LATE_S ? warning : failed)(
          'queue',
          `${summary}, the oldest overdue by ${lateS} s. ${remedy}`,
        )
  if (dead === 0) return [queue]
  const message = `${dead} deliveries failed permanently in the last day. Check the attempts of the webhooks, and replay the deliveries.`
  return [queue, warning('dead letters', message)]
}

const MANY_UNINDEXED = 100_000

/** Checks how many events the search index lacks. Searches read them one by one. */
export async function checkSearchIndex(sql: Sql): Promise<Finding> {
  const { projects, events } = await readIndexLag(sql)
  if (events === 0) return ok('search index', 'Up to date')
  const atLeast = projects === MAX_FOUND ? 'At least ' : ''
  const waiting = `${atLeast}${events} events of ${projects} projects are not indexed yet`
  return events < MANY_UNINDEXED
    ? ok('search index', waiting)
    : warning(
        'search index',
        `${waiting}. Searches find them, but take longer. Check that a server is running, and read its log.`,
      )
}

/** Checks the VAPID key, the contact that push services require, and that none refuses pushes. */
export async function checkPush(
  sql: Sql,
  { vapidSubject }: Pick<Config, 'vapidSubject'>,
): Promise<Finding[]> {
  const [{ has_key }] = await sql<[{ has_key: boolean }]>`
    select exists (select from vapid_keys) as has_key
  `
  const subject = await findVapidSubject(sql, vapidSubject)
  const refusing = await listRefusingServices(sql)
  return [
    has_key
      ? ok('push keys', 'A key exists')
      : ok('push keys', 'None yet. One is created when it is needed.'),
    subject === undefined
      ? warning(
          'push subject',
          'Push services have no contact for this server, and some of them require one. Set VAPID_SUBJECT to mailto: followed by your e-mail address.',
        )
      : ok('push subject', subject),
    ...(refusing.length === 0
      ? [ok('push services', 'None refuses the pushes of this server')]
      : refusing.map(one => failed('push services', describeRefusal(one, subject)))),
  ]
}
