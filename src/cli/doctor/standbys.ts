import { isBalanced, listHosts, type HostRole } from '../../database/primary.ts'
import type { Sql } from '../../database/sql.ts'
import { listStandbys, type Standby } from '../../database/standbys.ts'
import { describeHost, parseUrl } from '../../base/database-url.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const MAX_LAG_S = 5

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

/** Checks the hosts of DATABASE_READ_URL. */
export async function checkReplicas(url: string | undefined): Promise<Finding[]> {
  if (url === undefined) return []
  return Promise.all(
    (await listHosts(url)).map(async one => {
      const { host, role } = one
      if (await isBalanced(url, host).catch(() => false))
        return failed(
          'replicas',
          `${describeHost(host)} leads to several servers. Name each of them in DATABASE_READ_URL: a read can go to one that lacks what was written.`,
        )
      const text = describeRole(one)
      if (role === 'a standby') return ok('replicas', text)
      const remedy = role === 'unreachable' ? 'Start it' : 'Make it a standby'
      return warning(
        'replicas',
        `${text}. ${remedy}, or remove it from DATABASE_READ_URL. Until then, the primary answers reads.`,
      )
    }),
  )
}

function describeRole({ host, role, reason }: HostRole): string {
  return `${describeHost(host)} is ${role}${reason === undefined ? '' : ` (${reason})`}`
}

/** Says for each standby of the database what its promotion would lose. */
export async function checkStandbys(sql: Sql, url: string): Promise<Finding[]> {
  const standbys = await listStandbys(sql)
  if (!standbys) {
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
