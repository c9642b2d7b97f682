import { isSchemaCurrent } from './db/migrate.ts'
import type { Pool } from './db/pool.ts'
import { toReason } from './errors.ts'
import type { Appender } from './events/append.ts'
import type { OpenRoute } from './http/open-route.ts'

const READY_MS = 1_000
const MAX_WAITING = 10_000

export interface HealthOptions {
  reads: Pool
  appender: Appender
  state: { isDraining: boolean }
}

/** `/healthz`: the process answers. `/readyz`: it can do its work; 503 with the reasons when it cannot. */
export function healthRoutes(options: HealthOptions): OpenRoute[] {
  return [
    { path: '/healthz', respond: () => toJson(200, { status: 'ok' }) },
    {
      path: '/readyz',
      async respond() {
        const reasons = await findReasons(options)
        return reasons.length === 0
          ? toJson(200, { status: 'ready' })
          : toJson(503, { status: 'not ready', reasons })
      },
    },
  ]
}

async function findReasons({ reads, appender, state }: HealthOptions): Promise<string[]> {
  const reasons: string[] = []
  if (state.isDraining) reasons.push('The server is stopping')
  if (appender.waiting > MAX_WAITING) reasons.push('Too many events wait to be stored')
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(
    () => late.resolve('The database did not answer within a second'),
    READY_MS,
  )
  const database = reads.run(isSchemaCurrent).then(
    isCurrent => (isCurrent ? undefined : 'The database has another schema than this program'),
    (error: unknown) => `The database cannot be reached: ${toReason(error)}`,
  )
  const reason = await Promise.race([database, late.promise])
  clearTimeout(timer)
  if (reason !== undefined) reasons.push(reason)
  return reasons
}

function toJson(status: number, body: object): Response {
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store' } })
}
