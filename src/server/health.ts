import { findSchemaProblem } from '../database/migrate.ts'
import type { Pool } from '../database/pool.ts'
import { describeUnavailable, type Queryable, type Sql } from '../database/sql.ts'
import { findWriteProblem } from '../database/requirements.ts'
import { publicRoutes } from '../http/public-route.ts'
import type { Outbox } from '../delivery/outbox/outbox.ts'
import { DAMAGED } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'
import { registerGauge } from '../base/metrics.ts'

/** A probe that takes longer leaves the response to the one before. */
const READY_MS = 1_000
/** A test write reaches the disk, so requests share one for this time. */
const WRITE_EVERY_MS = 1_000
/** A lost LISTEN connection is replaced soon, and the feed works without hints for a while. */
const MAX_LISTENER_DOWN_MS = 15_000
const MAX_OLDEST_MS = 60_000

export interface HealthOptions {
  /** Connections that no request for data uses. */
  pool: Pool
  outbox: Pick<Outbox, 'oldestMs' | 'lagMs'>
  state: { isDraining: boolean }
  /** Returns whether an error has shown that the files of Postgres are damaged. */
  isDamaged(): boolean
  /** Resolves to true when the first key and the first owner exist. */
  isBootstrapped(sql: Queryable): Promise<boolean>
  /** Returns how long LISTEN has been down, in milliseconds. 0 while it works. */
  getListenerDownMs(): number
}

/**
 * `/healthz` returns 200 while the process runs. `/readyz` returns 200 when the server can work,
 * and 503 with the reasons when it cannot. Late deliveries and a slow database are reported as
 * `degraded` with a 200, because sending requests elsewhere would not make them faster.
 */
export function healthRoutes({ pool, isBootstrapped, ...options }: HealthOptions) {
  // Concurrent requests share one probe, because anyone can send any number of them.
  let running: Promise<string | undefined> | undefined
  let latest: string | undefined = 'The database has not responded yet'
  let wasBootstrapped = false
  let writtenMs = -Infinity
  const findProblem = async (sql: Sql) => {
    if (options.isDamaged()) return DAMAGED
    const schemaProblem = await findSchemaProblem(sql)
    if (schemaProblem !== undefined) return schemaProblem
    if (performance.now() - writtenMs > WRITE_EVERY_MS) {
      const writeProblem = await findWriteProblem(sql)
      if (writeProblem !== undefined) return writeProblem
      writtenMs = performance.now()
    }
    wasBootstrapped ||= await isBootstrapped(sql)
    return wasBootstrapped ? undefined : 'The first project or the first owner does not exist yet'
  }
  /** Only silence fails a probe that takes long: the pool ends it then. */
  async function probe(): Promise<{ problem: string | undefined; isLate: boolean }> {
    running ??= pool
      .run(findProblem)
      .catch(describeUnavailable)
      .then(problem => (latest = problem))
      .finally(() => (running = undefined))
    const found = running.then(problem => ({ problem, isLate: false }))
    return withTimeout(READY_MS, found, () => ({ problem: latest, isLate: true }))
  }
  registerGauge('tidings_ready', 'Whether /readyz responds with 200: 1 or 0.', {
    read: async () => Number(listReasons(options, (await probe()).problem).length === 0),
  })
  return publicRoutes('health', [
    { path: '/healthz', respond: () => toJson(200, { status: 'ok' }) },
    {
      path: '/readyz',
      async respond() {
        const { problem, isLate } = await probe()
        const reasons = listReasons(options, problem)
        const degraded = findDelays(options)
        if (isLate) degraded.push('The database took longer than a second to respond')
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
  const late = (text: string, ms: number) =>
    ms > MAX_OLDEST_MS ? [`${text} ${Math.round(ms / 1000)} s`] : []
  return [
    ...late('The oldest due delivery is overdue by', oldestMs),
    ...late('The latest events were dispatched after', lagMs),
  ]
}

function listReasons(
  { state, getListenerDownMs }: Pick<HealthOptions, 'state' | 'getListenerDownMs'>,
  problem: string | undefined,
): string[] {
  const reasons: string[] = []
  if (state.isDraining) reasons.push('The server is stopping')
  if (getListenerDownMs() > MAX_LISTENER_DOWN_MS) {
    reasons.push(
      'LISTEN does not work. Behind a connection pooler, set DATABASE_DIRECT_URL to the database itself.',
    )
  }
  if (problem !== undefined) reasons.push(problem)
  return reasons
}

function toJson(status: number, body: object): Response {
  const retry = status === 503 ? { 'Retry-After': '1' } : {}
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store', ...retry } })
}
