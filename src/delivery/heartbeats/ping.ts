import { removeEscapeSequences } from '../../base/display-text.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Queryable } from '../../database/sql.ts'
import { lockLog } from '../../log/channels/channels.ts'
import { tell, toAfter, type Place } from './heartbeats.ts'

/** The characters of a body that an event shows. */
const MAX_TAIL = 2_000

/** The report of a job. `address` and `runId` are uuids. */
export interface Ping {
  address: string
  kind: 'success' | 'start' | 'fail' | 'log'
  exitCode: number | null
  runId: string | null
  method: string
  userAgent: string
  body: string
}

/** A ping that was recorded, or was one too many. `tookMs` is the length of the run that ended. */
interface Pinged extends Place {
  outcome: 'ok' | 'failed' | 'recovered' | 'limited' | 'unlocked'
  tookMs: string | null
}

/** Returns the project of a heartbeat by its address, and the organization. */
export async function findAddress(sql: Queryable, address: string) {
  const [found] = await sql<{ projectId: string; organizationId: string }[]>`
    select p.id as "projectId", p.organization_id as "organizationId"
    from heartbeats h
      join projects p on p.id = h.project_id and p.deleted_at is null
    where h.address = ${address}
  `
  return found
}

/**
 * Records a ping, with an event if the heartbeat goes down or comes up by it. Undefined for an
 * unknown address. After `failed` and `recovered` the log has a new event.
 */
export async function recordPing(pool: Pool, projectId: string, ping: Ping) {
  const pinged = await pool.run(sql => record(sql, ping, false))
  if (pinged?.outcome !== 'unlocked') return pinged?.outcome
  return transact(pool, async tx => {
    await lockLog(tx, projectId)
    const now = await record(tx, ping, true)
    if (now?.outcome === 'failed')
      await tell(tx, now, ['firing', 'failed', describeFailure(ping, now)])
    else if (now?.outcome === 'recovered') await tell(tx, now, ['resolved', 'reports again'])
    return now?.outcome
  })
}

async function record(sql: Queryable, ping: Ping, hasLog: boolean): Promise<Pinged | undefined> {
  const { address, kind, exitCode, runId, method, userAgent, body } = ping
  const [pinged] = await sql<Pinged[]>`
    select
      p.outcome, p.project_id as "projectId", p.heartbeat_id as id, p.channel_id as "channelId", p.name,
      p.took_ms as "tookMs"
    from ping_heartbeat(
      ping_address => ${address}, ping_kind => ${kind}, ping_exit_code => ${exitCode}::smallint,
      ping_run_id => ${runId}, ping_method => ${method}, ping_user_agent => ${userAgent}, ping_body => ${body},
      has_log => ${hasLog}
    ) p
  `
  return pinged
}

function describeFailure({ exitCode, body }: Ping, { tookMs }: Pinged): string {
  const what = exitCode === null ? 'It reported a failure' : `Exit code ${exitCode}`
  const tail = [...removeEscapeSequences(body).trimEnd()].slice(-MAX_TAIL).join('')
  return `${what}${toAfter(tookMs)}.\n\n${tail}`.trim()
}
