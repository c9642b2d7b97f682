import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import type { Pool } from '../../database/pool.ts'
import { readBeginning, toDeclaredBytes } from '../../http/body.ts'
import { hold, respond, withCall, type Call } from '../../http/call.ts'
import type { FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import { tooManyRequests } from '../../http/limits/rate-limit.ts'
import { deferBody, type InputLimits } from '../../http/route.ts'
import { findAddress, recordPing, type Ping } from './ping.ts'

const MAX_BODY_BYTES = 100_000
const MAX_USER_AGENT = 200
const ADDRESS = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const RUN_ID = /^[0-9a-f]{8}(-?)(?:[0-9a-f]{4}\1){3}[0-9a-f]{12}$/i
const ACTION = /^\/ping\/([^/]+)(?:\/(start|fail|log|\d+))?\/?$/
/** The headers of healthchecks.io. Its clients read `Ping-Body-Limit`. */
const HEADERS = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Access-Control-Allow-Origin': '*',
  'Ping-Body-Limit': String(MAX_BODY_BYTES),
}
const FAILURES: Partial<Record<number, string>> = { 404: 'not found', 429: 'rate limited' }

export interface PingParts {
  pool: Pool
  failedAuthentications: FailedAuthentications
  inputLimits: InputLimits
  toAddress(request: Request): string
  onAppended(projectIds: ReadonlySet<string>): void
}

/** The addresses of heartbeats, as programs call those of healthchecks.io. */
export function pingRoutes(parts: PingParts) {
  const { pool, failedAuthentications, inputLimits } = parts

  async function ping(call: Call, request: Request): Promise<Response> {
    Object.assign(call, { headers: HEADERS, toFailureBody: toText })
    const { pathname, searchParams } = new URL(request.url)
    const [, address = '', action = 'success'] = ACTION.exec(pathname) ?? []
    const exitCode = /^\d/.test(action) ? Number(action) : null
    const found = await failedAuthentications.lookUp(
      ADDRESS.test(address) ? address : undefined,
      (_, share) => pool.of(share).run(sql => findAddress(sql, address)),
      () => parts.toAddress(request),
    )
    if (!found) throw unknownAddress()
    const { projectId, organizationId } = found
    if (exitCode !== null && exitCode > 255) return answer(call, 400, 'invalid url format')
    const runId = searchParams.get('rid')
    if (runId !== null && !RUN_ID.test(runId)) return answer(call, 400, 'invalid uuid format')
    hold(call, inputLimits.memory.reserve(organizationId, toDeclaredBytes(request)).release)
    const outcome = await recordPing(pool.of(organizationId), projectId, {
      address,
      kind: exitCode === null ? (action as Ping['kind']) : exitCode === 0 ? 'success' : 'fail',
      exitCode,
      runId,
      method: request.method,
      userAgent: (request.headers.get('user-agent') ?? '').slice(0, MAX_USER_AGENT).toWellFormed(),
      body: await readBeginning(request, { ...inputLimits, maxBytes: MAX_BODY_BYTES }),
    })
    if (outcome === undefined) throw unknownAddress()
    if (outcome === 'limited') throw tooManyRequests(60)
    if (outcome !== 'ok') parts.onAppended(new Set([projectId]))
    return answer(call, 200, 'OK')
  }

  const routes = new Elysia({ name: 'pings' }).use(withCall)
  for (const path of [
    '/ping/:address',
    '/ping/:address/',
    '/ping/:address/:action',
    '/ping/:address/:action/',
  ]) {
    for (const method of ['GET', 'POST']) {
      routes.route(
        method,
        path,
        ({ exchange, request }) => {
          exchange.route = path
          return ping(exchange, request)
        },
        { parse: deferBody, detail: { hide: true } },
      )
    }
  }
  return routes
}

function unknownAddress(): Fault {
  return new Fault('not_found', 'not found')
}

function answer(call: Call, status: number, body: string): Response {
  return respond(call, { status, body })
}

function toText({ status, body }: { status: number; body: string }): string {
  return FAILURES[status] ?? String(JSON.parse(body).error)
}
