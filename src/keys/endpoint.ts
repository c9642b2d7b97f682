import { Fault, invalidKey } from '../errors.ts'
import { readJson, readText, type BodyLimits } from '../http/body.ts'
import { toSuccess } from '../http/envelope.ts'
import { toFailure, type Answer } from '../http/failures.ts'
import type { Contract } from '../http/operation.ts'
import { createParamsReader } from '../http/params.ts'
import { toPathname } from '../http/pathname.ts'
import { createQueryReader } from '../http/query.ts'
import { toResponse } from '../http/response.ts'
import type { Route } from '../http/route.ts'
import type { Issue } from '../http/rules.ts'
import { createValidator, type ObjectSchema, type SchemaOf } from '../http/validation.ts'
import { readKey, toClaim, type Claim, type Outcome } from '../limits/idempotency.ts'
import type { Shares } from '../limits/shares.ts'
import { toHeaders, tooManyRequests } from '../limits/rate-limit.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import { logger } from '../log.ts'
import { requestSeconds, requests } from '../metrics.ts'
import type { Admission, Key } from './admission.ts'
import type { Scope } from './schema.ts'
import { hashToken, hasKeyInQuery, readToken } from './token.ts'

const log = logger('http')

/** What every endpoint of /v1 needs. */
export interface Gate {
  admission: Admission
  strangers: Strangers
  /** Of the connections that reads take, by project. */
  shares: Shares
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
  body?: SchemaOf<Body> | 'text'
  query?: ObjectSchema & SchemaOf<Query>
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

/**
 * An endpoint of /v1. `handle` returns an answer, or the JSON of `data` for the success envelope. The order of checks
 * is the contract's: key, rate limit, scope, content type, size, text, JSON, schema, Idempotency-Key, execution.
 */
export function endpoint<Body = string, Query = undefined>(
  options: EndpointOptions<Body, Query>,
): Endpoint {
  const { body: bodySchema, query: querySchema, scope, success } = options
  const { alsoCheck, adapt = (body: object) => body } = options
  const readParams = createParamsReader(options.path, options.params ?? {})
  const readQuery = querySchema && createQueryReader<Query>(querySchema)
  const validator =
    typeof bodySchema === 'object' ? createValidator<Body>(bodySchema, alsoCheck) : undefined

  async function call(gate: Gate, request: Request, key: Key, requestId: string) {
    const pathname = toPathname(request.url)
    let body: unknown
    let parsed: unknown
    if (bodySchema === 'text') body = parsed = await readText(request, gate.bodyLimits)
    else if (validator) {
      const { value, issues } = await readJson(request, gate.bodyLimits)
      parsed = value
      body = validator.parse(adapt(value), issues)
    }
    const params = readParams(pathname)
    const query = readQuery?.(request.url)
    const idempotencyKey = bodySchema && readKey(request.headers)
    const claim = idempotencyKey
      ? toClaim(idempotencyKey, options.method, pathname, parsed)
      : undefined
    // The validators above gave body and query the types that the contract declares.
    return { key, requestId, params, query, body, claim } as Call<Body, Query>
  }

  async function respond(gate: Gate, request: Request): Promise<Response> {
    const startedMs = performance.now()
    const requestId = crypto.randomUUID()
    let rateHeaders: Record<string, string> = {}
    let answer: Answer
    try {
      const { key, grant } = await authenticate(gate, request)
      rateHeaders = toHeaders(grant)
      if (!grant.isAllowed) throw tooManyRequests(grant.retryAfter)
      if (scope && !key.scopes.includes(scope)) {
        throw new Fault('insufficient_scope', `This API key lacks the scope ${scope}`)
      }
      const valid = await call(gate, request, key, requestId)
      // Writes of all keys go together; reads take a connection each.
      const result = await (options.method === 'GET'
        ? gate.shares.run(key.projectId, () => options.handle(valid))
        : options.handle(valid))
      answer =
        typeof result === 'string'
          ? {
              status: success.status,
              body: toSuccess(result, requestId),
              headers: {},
            }
          : result
    } catch (error) {
      answer = toFailure(error, requestId)
      // A project can go while its key is at work: whenever a 401 comes, it is the same.
      if (answer.status === 401) rateHeaders = {}
    }
    requests.inc({ route: options.path, status: answer.status })
    log.debug('{route} {status}', { requestId, route: options.path, status: answer.status })
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

/** The route of an endpoint behind its gate. */
export function toRoute(gate: Gate, { contract, respond }: Endpoint): Route {
  const { method, path } = contract
  return { method, path, respond: request => respond(gate, request) }
}

async function authenticate(gate: Gate, request: Request) {
  const token = hasKeyInQuery(request.url)
    ? undefined
    : readToken(request.headers.get('authorization'))
  const admitted = token === undefined ? undefined : await gate.admission.admit(hashToken(token))
  if (admitted) return admitted
  countStranger(gate.strangers, gate.toAddress(request))
  throw invalidKey()
}
