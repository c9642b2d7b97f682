import type { TSchema } from '@sinclair/typebox'
import type { Actor } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import { readJson, type BodyLimits } from '../http/body.ts'
import { toSuccess } from '../http/envelope.ts'
import { toFailure, type Answer } from '../http/failures.ts'
import { createParamsReader } from '../http/params.ts'
import { toPathname } from '../http/pathname.ts'
import { createQueryReader } from '../http/query.ts'
import { toResponse } from '../http/response.ts'
import type { Route } from '../http/route.ts'
import { Text, type Issue } from '../http/rules.ts'
import type { Hints } from '../hints.ts'
import { checkSameSite, type Site } from '../http/site.ts'
import { createValidator, type ObjectSchema, type SchemaOf } from '../http/validation.ts'
import { parseId } from '../ids.ts'
import type { Shares } from '../limits/shares.ts'
import { countStranger, type Strangers } from '../limits/strangers.ts'
import { logger } from '../log.ts'
import { requestSeconds, requests } from '../metrics.ts'
import type { Cookies } from './cookies.ts'
import {
  ACTIONS,
  authorize,
  endsAccess,
  type Action,
  type Place,
  type Role,
} from './permissions.ts'
import { hashSecret } from './secret.ts'
import { admitSession, type Admitted } from './sessions.ts'

const log = logger('http')

/** What every endpoint of /api needs. */
export interface ApiGate {
  pool: Pool
  /** Of the moment: a server that finds its own port knows it once it listens. */
  getSite(): Site
  getCookies(): Cookies
  strangers: Strangers
  /** Of the pool's connections, by person. */
  shares: Shares
  hints: Hints
  bodyLimits: BodyLimits
  toAddress(request: Request): string
}

/** Everything that an endpoint of /api promises. */
export interface ApiContract {
  method: Route['method']
  /** With parameters as `:name`; `:organizationId` or `:projectId` is what the action is about. */
  path: `/api/${string}`
  /** What is done: permissions.ts says who may. */
  action: Action
  query?: ObjectSchema
  body?: TSchema
  /** The schema of `data` in the answer. */
  success: { status: 200 | 201; data: TSchema }
}

type Params = Readonly<Record<string, string>>

interface Subjects {
  anyone: { admitted: Admitted | undefined }
  person: { admitted: Admitted }
  installation: { admitted: Admitted }
  organization: { admitted: Admitted; organizationId: string; role: Role }
  project: { admitted: Admitted; organizationId: string; projectId: string; role: Role }
}

/** A permitted and valid request. organizationId and projectId are uuids that the person is a member of. */
export type ApiCall<A extends Action, Body, Query> = Subjects[Place<A>] & {
  /** For the audit log. */
  actor: Actor
  /** The secret in the session's cookie, if there is one. */
  token: string | undefined
  address: string
  userAgent: string
  headers: Headers
  requestId: string
  params: Params
  query: Query
  body: Body
}

export interface ApiOptions<A extends Action, Body, Query> extends ApiContract {
  action: A
  body?: SchemaOf<Body>
  query?: ObjectSchema & SchemaOf<Query>
  /** Rules that concern several fields of the body. */
  alsoCheck?(body: Body): readonly Issue[]
  /** The JSON of `data`, or a whole answer. */
  handle(call: ApiCall<A, Body, Query>): Promise<Answer | string>
}

export interface ApiEndpoint {
  contract: ApiContract
  respond(gate: ApiGate, request: Request): Promise<Response>
}

const HEADERS = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Cookie',
}
const UUID_PREFIX = { organizationId: 'org', projectId: 'prj' } as const

/**
 * An endpoint of /api. The order of checks: the page that asks, session, permission, content type, body, query,
 * execution.
 */
export function apiEndpoint<const A extends Action, Body = undefined, Query = undefined>(
  options: ApiOptions<A, Body, Query>,
): ApiEndpoint {
  const names = [...options.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const paramText = Text({ minLength: 1, maxLength: 255 })
  const readParams = createParamsReader(
    options.path,
    Object.fromEntries(names.map(name => [name, paramText])),
  )
  const readQuery = options.query && createQueryReader<Query>(options.query)
  const validator = options.body && createValidator<Body>(options.body, options.alsoCheck)
  const place: Place = ACTIONS[options.action].on

  async function call(gate: ApiGate, request: Request, requestId: string) {
    if (options.method !== 'GET') checkSameSite(request.headers, gate.getSite())
    const values = readParams(toPathname(request.url))
    const params = Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
    const token = gate.getCookies().read(request.headers, 'session')
    const enter = async () => {
      const admitted =
        token === undefined ? undefined : await admit(gate, request, { token, params, place })
      authorize(
        admitted && { isOperator: admitted.person.isOperator, isVerified: admitted.isVerified },
        options.action,
        admitted && (place === 'organization' || place === 'project')
          ? { kind: place, role: isThere(admitted, place) ? admitted.role : undefined }
          : undefined,
      )
      return admitted
    }
    let admitted = await enter()
    let body: unknown
    if (validator) {
      const { value, issues } = await readJson(request, gate.bodyLimits)
      body = validator.parse(value, issues)
      // A body may take its time to arrive, and nobody acts on what they were when it began.
      admitted = await enter()
    }
    const address = gate.toAddress(request)
    const userAgent = request.headers.get('user-agent') ?? ''
    const who = admitted
      ? { kind: 'person', personId: admitted.person.id, sessionId: admitted.session.id }
      : { kind: 'stranger' }
    // authorize saw that all is there that the action's place promises; the validators gave body and query their types.
    return {
      admitted,
      organizationId: admitted?.organizationId,
      projectId: admitted?.projectId,
      role: admitted?.role,
      actor: { ...who, address, userAgent },
      token,
      address,
      userAgent,
      headers: request.headers,
      requestId,
      params,
      query: readQuery?.(request.url),
      body,
    } as unknown as ApiCall<A, Body, Query>
  }

  async function respond(gate: ApiGate, request: Request): Promise<Response> {
    const startedMs = performance.now()
    const requestId = crypto.randomUUID()
    let answer: Answer
    try {
      const valid = await call(gate, request, requestId)
      const person = valid.admitted?.person
      const result = await (person
        ? gate.shares.run(person.id, () => options.handle(valid))
        : options.handle(valid))
      if (endsAccess(options.action)) gate.hints.tell([{ kind: 'access' }])
      answer =
        typeof result === 'string'
          ? { status: options.success.status, body: toSuccess(result, requestId), headers: {} }
          : result
    } catch (error) {
      answer = toFailure(error, requestId)
    }
    requests.inc({ route: options.path, status: answer.status })
    log.debug('{route} {status}', { requestId, route: options.path, status: answer.status })
    requestSeconds.observe({ route: options.path }, (performance.now() - startedMs) / 1000)
    return toResponse(answer, requestId, HEADERS)
  }

  return { contract: options, respond }
}

/** The route of an endpoint behind its gate. */
export function toApiRoute(gate: ApiGate, { contract, respond }: ApiEndpoint): Route {
  const { method, path } = contract
  return { method, path, respond: request => respond(gate, request) }
}

/** The session of `token`; who tries many that are none is told to wait. */
async function admit(
  gate: ApiGate,
  request: Request,
  { token, params, place }: { token: string; params: Params; place: Place },
): Promise<Admitted | undefined> {
  const wanted = {
    hash: hashSecret(token),
    organizationId: toUuid(params, 'organizationId'),
    projectId: toUuid(params, 'projectId'),
  }
  const admitted = await gate.pool.run(sql => admitSession(sql, wanted))
  // What is open to anyone is so to somebody with an old cookie, whatever goes on in their network.
  if (admitted || place === 'anyone') return admitted
  countStranger(gate.strangers, gate.toAddress(request))
  return undefined
}

function toUuid(params: Params, name: keyof typeof UUID_PREFIX): string | undefined {
  const id = params[name]
  return id === undefined ? undefined : parseId(UUID_PREFIX[name], id)
}

function isThere(admitted: Admitted, place: 'organization' | 'project'): boolean {
  return (place === 'project' ? admitted.projectId : admitted.organizationId) !== undefined
}
