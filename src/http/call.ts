import { Elysia } from 'elysia'
import { Fault } from '../errors.ts'
import { isDebugging, logger } from '../log.ts'
import { countRequest } from '../metrics.ts'
import type { Semaphore } from '../semaphore.ts'
import { toSuccess } from './envelope.ts'
import { toFailure, type ResponseParts } from './failures.ts'
import type { Issue } from './rules.ts'

const log = logger('http')

/** One request, from its arrival to its answer. */
export interface Call {
  readonly requestId: string
  /** By `performance.now()`. */
  readonly startedMs: number
  /** The path of its route, with parameters as `:name`; `none` until a route is found. */
  route: string
  /** Headers of its answer, whatever that will be. */
  headers: Readonly<Record<string, string>>
  /** Texts of path, query and body that are wrong whatever the schema says. */
  issues: readonly Issue[]
  /** Frees what the request holds while it is handled. */
  release: (() => void) | undefined
}

/** A call that passed the guard of its route: only a route with a guard can answer. */
export interface GuardedCall extends Call {
  readonly guard: 'key' | 'session'
}

export function newCall(): Call {
  return {
    requestId: crypto.randomUUID(),
    startedMs: performance.now(),
    route: 'none',
    headers: {},
    issues: [],
    release: undefined,
  }
}

/** Gives every context its call, as `exchange`: handlers see `call`, which the guard of their route adds. */
export const withCall = new Elysia({ name: 'call' }).decorate('exchange', newCall())

/** Takes a slot of `key` for the rest of the call. Throws `unavailable` where too many wait for one. */
export async function acquireSlot(call: Call, concurrency: Semaphore, key: string): Promise<void> {
  call.release = await concurrency.acquire(key)
  if (!call.release) {
    throw new Fault('unavailable', 'Too many requests at once. Try again shortly.')
  }
}

type Extra = Pick<ResponseParts, 'headers' | 'cookies'>

/** Answers with the success envelope around `data`. */
export function succeed(
  call: GuardedCall,
  status: 200 | 201,
  data: object,
  extra?: Extra,
): Response {
  return succeedJson(call, status, JSON.stringify(data), extra)
}

/** Answers with the success envelope around `dataJson`, which is JSON text already. */
export function succeedJson(
  call: GuardedCall,
  status: 200 | 201,
  dataJson: string,
  extra: Extra = {},
): Response {
  return respond(call, { status, body: toSuccess(dataJson, call.requestId), ...extra })
}

/** Answers with what a thrown value means to the caller. */
export function fail(call: Call, error: unknown): Response {
  // A project can go while its key is at work: a 401 is the same whenever it comes, and has no rate headers.
  if (error instanceof Fault && error.code === 'unauthorized') call.headers = {}
  return respond(call, toFailure(error, call.requestId))
}

/** Ends a call with a JSON answer of ours. */
export function respond(call: Call, { status, body, headers, cookies }: ResponseParts): Response {
  call.release?.()
  call.release = undefined
  const { route, requestId } = call
  countRequest(route, status, call.startedMs)
  if (isDebugging()) log.debug('{route} {status}', { requestId, route, status })
  const response = new Response(body, {
    status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      ...call.headers,
      ...headers,
    },
  })
  for (const cookie of cookies ?? []) response.headers.append('Set-Cookie', cookie)
  return response
}
