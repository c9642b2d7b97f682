import { isSchemaCurrent } from '../db/migrate.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable, Sql } from '../db/sql.ts'
import type { Appender } from '../events/append.ts'
import { publicRoutes } from '../http/public-route.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { withTimeout } from '../functions.ts'

const READY_MS = 1_000
const MAX_WAITING = 10_000
/** The feed gets along without hints, and a connection that was lost is soon replaced: not every loss is a failure. */
const MAX_LISTENER_DOWN_MS = 15_000
const MAX_OLDEST_MS = 60_000

export interface HealthOptions {
  reads: Pool
  appender: Appender
  outbox: Pick<Outbox, 'oldestMs' | 'lagMs'>
  state: { isDraining: boolean }
  /** Whether the first key and the first owner exist. */
  isBootstrapped(sql: Queryable): Promise<boolean>
  /** How long hints of other servers have not been heard, in milliseconds; 0 while they are. */
  getListenerDownMs(): number
}

/**
 * `/healthz`: the process answers. `/readyz`: it can do its work; 503 with the reasons when it cannot. What it does late
 * is `degraded`, and still a 200: who stops sending requests to it does not make it faster.
 */
export function healthRoutes({ reads, isBootstrapped, ...options }: HealthOptions) {
  // Whoever asks while a probe is under way shares it: anyone may ask, and as often as they like.
  let running: Promise<string | undefined> | undefined
  let wasBootstrapped = false
  const findProblem = async (sql: Sql) => {
    if (!(await isSchemaCurrent(sql))) return 'The database has another schema than this program'
    wasBootstrapped ||= await isBootstrapped(sql)
    return wasBootstrapped ? undefined : 'The first API key, or the first owner, is not created yet'
  }
  const probe = () =>
    (running ??= reads.run(findProblem).finally(() => {
      running = undefined
    }))
  return publicRoutes('health', [
    { path: '/healthz', respond: () => toJson(200, { status: 'ok' }) },
    {
      path: '/readyz',
      async respond() {
        const reasons = await findReasons({ ...options, probe })
        const degraded = findDelays(options)
        const listener = options.getListenerDownMs() === 0 ? 'up' : 'down'
        return reasons.length === 0
          ? toJson(200, { status: 'ready', listener, ...(degraded.length > 0 && { degraded }) })
          : toJson(503, { status: 'not ready', listener, reasons })
      },
    },
  ])
}

function findDelays({ outbox }: Pick<HealthOptions, 'outbox'>): string[] {
  const { oldestMs, lagMs } = outbox
  const late = (what: string, ms: number) =>
    ms > MAX_OLDEST_MS ? [`${what} ${Math.round(ms / 1000)} s`] : []
  return [
    ...late('The oldest delivery has been due for', oldestMs),
    ...late('New events were dispatched after', lagMs),
  ]
}

type Probed = Omit<HealthOptions, 'reads' | 'outbox' | 'isBootstrapped'> & {
  probe: () => Promise<string | undefined>
}

async function findReasons({
  probe,
  appender,
  state,
  getListenerDownMs,
}: Probed): Promise<string[]> {
  const reasons: string[] = []
  if (state.isDraining) reasons.push('The server is stopping')
  if (appender.waiting > MAX_WAITING) reasons.push('Too many events wait to be stored')
  if (getListenerDownMs() > MAX_LISTENER_DOWN_MS) {
    reasons.push(
      'LISTEN does not work: behind a pooler, set DATABASE_DIRECT_URL to the database itself',
    )
  }
  const database = probe().catch(() => 'The database cannot be reached')
  const reason = await withTimeout(
    READY_MS,
    database,
    () => 'The database did not answer within a second',
  )
  if (reason !== undefined) reasons.push(reason)
  return reasons
}

function toJson(status: number, body: object): Response {
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store' } })
}
