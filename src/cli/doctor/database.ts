import { randomUUID } from 'node:crypto'
import { hasOwner } from '../../accounts/owners.ts'
import { listMigrations } from '../../db/migrate.ts'
import { connect, type Sql } from '../../db/sql.ts'
import { toReason } from '../../errors.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const MAX_SKEW_S = 5
const HEAR_MS = 3_000

/** What the database is, whether its schema is this program's, its clock, and whether somebody can sign in. */
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
      ...(isCurrent ? [...(await checkLeap(sql)), await checkOwner(sql)] : []),
    ],
  }
}

/** On a connection that stands already: opening one takes its time. */
async function checkClock(sql: Sql): Promise<Finding> {
  const [{ skew }] = await sql<[{ skew: number }]>`
    select abs(extract(epoch from clock_timestamp() - ${new Date()}))::float8 as skew
  `
  return skew <= MAX_SKEW_S
    ? ok('clock', 'agrees with the database')
    : failed('clock', `is ${skew.toFixed(0)} s off the database's: set both by NTP`)
}

/** Whether the clock has leapt ahead, so that nothing is deleted by it for a while. */
async function checkLeap(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<{ until: Date }[]>`
    select doubted_until as until from clock where doubted_until > now()
  `
  if (!row) return []
  const message = `the database's has leapt ahead, or no server ran for long: nothing is deleted for its age until ${row.until.toISOString()}. If it is wrong, set it before then`
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

/** Whether a word that is sent with NOTIFY is heard on a connection that listens, as servers hear of each other's news. */
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
