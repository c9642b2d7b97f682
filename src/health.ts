import { isSchemaCurrent } from './db/migrate.ts'
import type { Pool } from './db/pool.ts'
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
export function healthRoutes({ reads, ...options }: HealthOptions): OpenRoute[] {
  // Whoever asks while a probe is under way shares it: anyone may ask, and as often as they like.
  let running: Promise<boolean> | undefined
  const probe = () =>
    (running ??= reads.run(isSchemaCurrent).finally(() => {
      running = undefined
    }))
  return [
    { path: '/healthz', respond: () => toJson(200, { status: 'ok' }) },
    {
      path: '/readyz',
      async respond() {
        const reasons = await findReasons({ ...options, probe })
        return reasons.length === 0
          ? toJson(200, { status: 'ready' })
          : toJson(503, { status: 'not ready', reasons })
      },
    },
  ]
}

type Probed = Omit<HealthOptions, 'reads'> & { probe: () => Promise<boolean> }

async function findReasons({ probe, appender, state }: Probed): Promise<string[]> {
  const reasons: string[] = []
  if (state.isDraining) reasons.push('The server is stopping')
  if (appender.waiting > MAX_WAITING) reasons.push('Too many events wait to be stored')
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(
    () => late.resolve('The database did not answer within a second'),
    READY_MS,
  )
  const database = probe().then(
    isCurrent => (isCurrent ? undefined : 'The database has another schema than this program'),
    () => 'The database cannot be reached',
  )
  const reason = await Promise.race([database, late.promise])
  clearTimeout(timer)
  if (reason !== undefined) reasons.push(reason)
  return reasons
}

function toJson(status: number, body: object): Response {
  return Response.json(body, { status, headers: { 'Cache-Control': 'no-store' } })
}
