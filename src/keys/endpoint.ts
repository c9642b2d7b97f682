import type { Static, TObject, TSchema } from '@sinclair/typebox'
import { Fault, invalidKey } from '../errors.ts'
import { readJson, readText, type BodyLimits } from '../http/body.ts'
import { toFailure, type Answer } from '../http/failures.ts'
import type { Contract } from '../http/operation.ts'
import { createQueryReader } from '../http/query.ts'
import type { Issue } from '../http/rules.ts'
import { createValidator, invalidField } from '../http/validation.ts'
import { readKey, toClaim, type Claim, type Outcome } from '../limits/idempotency.ts'
import { toHeaders } from '../limits/rate-limit.ts'
import type { Strangers } from '../limits/strangers.ts'
import { requestSeconds, requests } from '../metrics.ts'
import type { Admission, Key } from './admission.ts'
import type { Scope } from './schema.ts'
import { hashToken, isInQuery, readToken } from './token.ts'

/** What every endpoint of /v1 needs. */
export interface Gate {
  admission: Admission
  strangers: Strangers
  bodyLimits: BodyLimits
  /** The client's address, for counting failed authentications. */
  toAddress(request: Request): string
}

/** An authenticated, admitted and valid request. */
export interface Call<Body, Query> {
  key: Key
  requestId: string
  params: string[]
  query: Query
  body: Body
  /** What its Idempotency-Key claims, if it has one. */
  claim: Claim | undefined
}

export interface EndpointOptions<Body, Query> extends Contract {
  scope?: Scope
  /** Rules that concern several fields of the body. */
  alsoCheck?(body: Body): readonly Issue[]
  /** Rewrites the body before it is validated. */
  adapt?(body: object): object
  handle(call: Call<Body, Query>): Promise<Answer | string>
}

export interface Endpoint {
  contract: Contract
  respond(gate: Gate, request: Request): Promise<Response>
}

type BodyOf<Schema> = Schema extends TSchema
  ? Static<Schema>
  : Schema extends 'text'
    ? string
    : undefined
type QueryOf<Schema> = Schema extends TObject ? Static<Schema> : undefined

/**
 * An endpoint of /v1. `handle` returns an answer, or the JSON of `data` for the success envelope. The order of checks
 * is the contract's: key, rate limit, scope, content type, size, text, JSON, schema, Idempotency-Key, execution.
 */
export function endpoint<
  Body extends TSchema | 'text' | undefined = undefined,
  Query extends TObject | undefined = undefined,
>(
  options: EndpointOptions<BodyOf<Body>, QueryOf<Query>> & { body?: Body; query?: Query },
): Endpoint {
  const { body: bodySchema, query: querySchema, scope, success } = options
  const { alsoCheck, adapt = (body: object) => body } = options
  const readQuery = querySchema && createQueryReader(querySchema)
  const validator =
    typeof bodySchema === 'object'
      ? createValidator(bodySchema, alsoCheck as (body: unknown) => readonly Issue[])
      : undefined
  const places = options.path
    .split('/')
    .flatMap((part, place) => (part.startsWith(':') ? [place] : []))
  const names = Object.keys(options.params ?? {})

  async function call(gate: Gate, request: Request, key: Key, requestId: string) {
    const { pathname } = splitUrl(request.url)
    let body: unknown
    let parsed: unknown
    if (bodySchema === 'text') body = parsed = await readText(request, gate.bodyLimits)
    else if (validator) {
      parsed = await readJson(request, gate.bodyLimits)
      body = validator.parse(adapt(parsed as object))
    }
    const params = toParams(pathname, places, names)
    const query = readQuery?.(request.url)
    const idempotencyKey = bodySchema && readKey(request.headers)
    const claim = idempotencyKey
      ? toClaim(idempotencyKey, options.method, pathname, parsed)
      : undefined
    // The validators above gave body and query the types that the contract declares.
    return { key, requestId, params, query, body, claim } as Call<BodyOf<Body>, QueryOf<Query>>
  }

  async function respond(gate: Gate, request: Request): Promise<Response> {
    const startedMs = performance.now()
    const requestId = crypto.randomUUID()
    let rateHeaders: Record<string, string> = {}
    let answer: Answer
    try {
      const { key, grant } = await authenticate(gate, request)
      rateHeaders = toHeaders(grant)
      if (!grant.isAllowed) throw tooMany(grant.retryAfter)
      if (scope && !key.scopes.includes(scope)) {
        throw new Fault('insufficient_scope', `This API key lacks the scope ${scope}`)
      }
      const result = await options.handle(await call(gate, request, key, requestId))
      answer =
        typeof result === 'string'
          ? {
              status: success.status,
              body: `{"success":true,"data":${result},"requestId":"${requestId}"}`,
              headers: {},
            }
          : result
    } catch (error) {
      answer = toFailure(error, requestId)
    }
    requests.inc({ route: options.path, status: answer.status })
    requestSeconds.observe({ route: options.path }, (performance.now() - startedMs) / 1000)
    return toResponse(answer, requestId, rateHeaders)
  }

  return { contract: options, respond }
}

/** The answer to a keyed or unkeyed write: a replay says so, and a reused key is refused. */
export function toWriteAnswer(
  status: number,
  { outcome, body }: { outcome: Outcome; body: string },
): Answer {
  if (outcome === 'reused') {
    throw new Fault('idempotency_key_reused', 'This Idempotency-Key was used for another request')
  }
  return { status, body, headers: outcome === 'replayed' ? { 'X-Idempotent-Replay': 'true' } : {} }
}

/** A JSON response of /v1. */
export function toResponse(
  { status, body, headers }: Answer,
  requestId: string,
  rateHeaders: Record<string, string> = {},
): Response {
  return new Response(body, {
    status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      ...rateHeaders,
      ...headers,
    },
  })
}

async function authenticate(gate: Gate, request: Request) {
  const token = isInQuery(request.url) ? undefined : readToken(request.headers.get('authorization'))
  const admitted = token === undefined ? undefined : await gate.admission.admit(hashToken(token))
  if (admitted) return admitted
  const waitSeconds = gate.strangers.take(gate.toAddress(request), Date.now())
  throw waitSeconds === undefined ? invalidKey() : tooMany(waitSeconds)
}

function tooMany(seconds: number): Fault {
  return new Fault('rate_limited', `Too many requests, try again in ${seconds} s`, {
    'Retry-After': String(seconds),
  })
}

function splitUrl(url: string): { pathname: string } {
  const start = url.indexOf('/', 8)
  const end = url.indexOf('?', start)
  return { pathname: end < 0 ? url.slice(start) : url.slice(start, end) }
}

function toParams(pathname: string, places: number[], names: string[]): string[] {
  const parts = pathname.split('/')
  return places.map((place, index) => {
    try {
      return decodeURIComponent(parts[place] ?? '')
    } catch {
      throw invalidField(names[index] ?? '', 'invalid_encoding', 'Must be percent-encoded UTF-8')
    }
  })
}
