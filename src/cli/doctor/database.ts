import { randomUUID } from 'node:crypto'
import { hasOwner } from '../../accounts/owners.ts'
import { listMigrations } from '../../db/migrate.ts'
import { connect, type Sql } from '../../db/sql.ts'
import { toReason } from '../../errors.ts'
import { failed, ok, warning, type Finding } from './finding.ts'
import { findSecretsProblem, type SecretSource } from '../../secrets/open-secrets.ts'
import type { Config } from '../../config.ts'
import { parseVapidSubject } from '../../config/values.ts'

const MAX_SKEW_S = 5
const HEAR_MS = 3_000

/** Checks the version, the schema and the clock of the database, and that there is an owner. */
export async function checkDatabase(
  sql: Sql,
  kind: string,
): Promise<{ findings: Finding[]; isCurrent: boolean }> {
  const [row] = await sql<[{ version: string }]>`
    select current_setting('server_version') as version
  `
  const pending = (await listMigrations(sql)).filter(({ isApplied }) => !isApplied)
  const isCurrent = pending.length === 0
  const names = pending.map(({ name }) => name).join(', ')
  return {
    isCurrent,
    findings: [
      ok('database', `${kind} PostgreSQL ${row.version}`),
      isCurrent
        ? ok('migrations', 'up to date')
        : warning('migrations', `${names} will be applied at the next start`),
      await checkClock(sql),
      ...(isCurrent ? [...(await checkClockJump(sql)), await checkOwner(sql)] : []),
    ],
  }
}

/** Uses an open connection: the time for opening one would count as skew. */
async function checkClock(sql: Sql): Promise<Finding> {
  const [{ skew }] = await sql<[{ skew: number }]>`
    select abs(extract(epoch from clock_timestamp() - ${new Date()}))::float8 as skew
  `
  return skew <= MAX_SKEW_S
    ? ok('clock', 'agrees with the database')
    : failed('clock', `is ${skew.toFixed(0)} s off the database's: set both by NTP`)
}

/** Reports a leap of the clock, after which nothing is deleted for its age for a while. */
async function checkClockJump(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<{ until: Date }[]>`
    select untrusted_until as until from clock where untrusted_until > now()
  `
  if (!row) return []
  const message = `The database's clock jumped forward, or no server ran for a long time. Nothing is deleted for its age until ${row.until.toISOString()}. If the clock is wrong, correct it before then.`
  return [warning('clock', message)]
}

async function checkOwner(sql: Sql): Promise<Finding> {
  return (await hasOwner(sql))
    ? ok('owner', 'somebody can sign in')
    : warning(
        'owner',
        'nobody can sign in yet: open the setup link that the server prints at its start, or run `tidings owner create`',
      )
}

/** Checks that LISTEN receives a NOTIFY of another connection, as servers need it. */
export async function checkListener(sql: Sql, listenUrl: string): Promise<Finding> {
  const check = 'listener'
  const remedy = 'behind a pooler, set DATABASE_DIRECT_URL to the database itself'
  const channel = `tidings_doctor_${randomUUID().replaceAll('-', '')}`
  const heard = Promise.withResolvers<boolean>()
  const listening = connect(listenUrl, {
    name: 'doctor listen',
    max: 1,
    listener: { onNotify: () => heard.resolve(true), onClose: () => {} },
  })
  const timer = setTimeout(() => heard.resolve(false), HEAR_MS)
  try {
    await listening.unsafe(`listen ${channel}`)
    await sql`select pg_notify(${channel}, 'doctor')`
    return (await heard.promise)
      ? ok(check, 'what other servers say is heard at once')
      : failed(check, `LISTEN hears nothing: ${remedy}`)
  } catch (error) {
    return failed(check, `LISTEN does not work (${toReason(error)}): ${remedy}`)
  } finally {
    clearTimeout(timer)
    await listening.end({ timeout: 1 })
  }
}

/** Checks that the APP_SECRET opens the database's secrets. Skipped before their migration. */
export async function checkSecret(sql: Sql, source: SecretSource): Promise<Finding[]> {
  const [{ is_there }] = await sql<[{ is_there: boolean }]>`
    select to_regclass('sealed_canary') is not null as is_there
  `
  if (!is_there) return []
  const problem = await findSecretsProblem(sql, source)
  return [
    problem === undefined
      ? ok('APP_SECRET', "opens the database's secrets")
      : failed('APP_SECRET', problem),
  ]
}

const LATE_S = 60
const VERY_LATE_S = 3_600

/** Checks the waiting deliveries, their delay, and the dead letters. */
export async function checkQueue(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<[{ pending: number; late_s: number; dead: number }]>`
    select
      count(*)::int as pending,
      greatest(0, coalesce(extract(epoch from now() - min(available_at)), 0))::int as late_s,
      (select count(*)::int from dead_letters where at > now() - interval '1 day') as dead
    from outbox
  `
  const { pending, late_s: lateS, dead } = row
  const waiting = `${pending} deliveries wait`
  const remedy = 'see that a server runs, and what its log says'
  const queue =
    lateS <= LATE_S
      ? ok('queue', `${waiting}, none of them late`)
      : (lateS <= VERY_LATE_S ? warning : failed)(
          'queue',
          `${waiting}, the oldest has been due for ${lateS} s: ${remedy}`,
        )
  if (dead === 0) return [queue]
  const message = `${dead} deliveries were given up in a day: look at the webhooks' attempts, and replay them`
  return [queue, warning('dead letters', message)]
}

/** Checks the key and the contact that push services require. */
export async function checkPush(
  sql: Sql,
  { vapidSubject }: Pick<Config, 'vapidSubject'>,
): Promise<Finding[]> {
  const [row] = await sql<[{ has_key: boolean; email: string | null }]>`
    select
      exists (select from vapid_keys) as has_key,
      (select email from accounts where is_operator order by created_at, id limit 1) as email
  `
  const key = row.has_key
    ? ok('push keys', 'there is one')
    : ok('push keys', 'none yet: one is made when it is needed')
  const subject =
    vapidSubject ?? (row.email === null ? undefined : parseVapidSubject(`mailto:${row.email}`))
  return [
    key,
    subject === undefined
      ? warning(
          'push subject',
          'nobody answers for this server at push services, and some of them refuse that: set VAPID_SUBJECT to mailto: and your address',
        )
      : ok('push subject', subject),
  ]
}
