import { listHosts, type HostRole } from '../../database/primary.ts'
import type { Sql } from '../../database/sql.ts'
import { describeHost, parseUrl } from '../../base/database-url.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const MAX_LAG_S = 5
const MAX_STANDBYS = 20

/** A standby that is connected to the primary. */
interface Standby {
  /** Its application_name. */
  name: string
  /** True if commits wait for it, so that its promotion loses nothing that was accepted. */
  isSynchronous: boolean
  /** WAL that it has not stored yet. Its promotion would lose it. */
  lagBytes: number
  /** The time of that WAL, in seconds. */
  lagSeconds: number
  /** True if the user of the database has no right to see it. pg_monitor grants it. */
  isHidden: boolean
}

/** Checks the hosts of a database URL that names several. */
export async function checkHosts(url: string): Promise<Finding[]> {
  const states = await listHosts(url)
  if (states.length < 2) return []
  const text = states.map(describeRole).join(', ')
  const primaries = states.filter(({ role }) => role === 'the primary')
  if (primaries.length > 1)
    return [
      failed(
        'hosts',
        `${text}. Stop the former primary: it accepts events of other programs that the new one lacks.`,
      ),
    ]
  return [
    states.some(({ role }) => role === 'unreachable')
      ? warning('hosts', `${text}. Start it, or remove it from DATABASE_URL.`)
      : ok('hosts', text),
  ]
}

function describeRole({ host, role, reason }: HostRole): string {
  return `${describeHost(host)} is ${role}${reason === undefined ? '' : ` (${reason})`}`
}

/** Says for each standby of the database what its promotion would lose. */
export async function checkStandbys(sql: Sql, url: string): Promise<Finding[]> {
  const standbys = await sql<Standby[]>`
    select
      coalesce(application_name, '') as name,
      coalesce(sync_state in ('sync', 'quorum'), false) as "isSynchronous",
      greatest(0, coalesce(pg_wal_lsn_diff(w.lsn, flush_lsn), 0))::float8 as "lagBytes",
      case when flush_lsn < w.lsn
        -- The measured lag stands still when the standby does not reply.
        then greatest(0, extract(epoch from greatest(flush_lag, now() - reply_time)))
        else 0
      end::float8 as "lagSeconds",
      state is null as "isHidden"
    from pg_stat_replication
      cross join (
        select case when not pg_is_in_recovery() then pg_current_wal_flush_lsn() end as lsn
      ) w
    where state is null or state = 'streaming'
    order by name
    limit ${MAX_STANDBYS}
  `
  if (standbys.some(({ isHidden }) => isHidden)) {
    return [
      warning(
        'standbys',
        'The user of DATABASE_URL may not see them. Run `grant pg_monitor to` its name as a superuser.',
      ),
    ]
  }
  if (standbys.length === 0) {
    const message =
      'None is connected. If this database is lost, everything since the last backup is lost.'
    // Several hosts mean that a standby was set up.
    return parseUrl(url).hosts.length > 1
      ? [warning('standbys', `${message} Check the replication.`)]
      : [ok('standbys', message)]
  }
  return standbys.map(toFinding)
}

function toFinding({ name, isSynchronous, lagBytes, lagSeconds }: Standby): Finding {
  if (isSynchronous) {
    return ok('standbys', `${name} is synchronous. A fail-over to it loses no accepted event.`)
  }
  const lag = `${lagSeconds.toFixed(1)} s (${Math.ceil(lagBytes / 1_000)} kB of WAL)`
  const text = `${name} is asynchronous. A fail-over to it now would lose the last ${lag}.`
  return lagSeconds <= MAX_LAG_S
    ? ok('standbys', text)
    : warning('standbys', `${text} Check its machine and the network.`)
}
