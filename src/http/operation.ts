import type { TSchema } from '@sinclair/typebox'
import {
  ApiFailure,
  Failure,
  InternalFailure,
  RateLimited,
  Unauthorized,
  ValidationFailure,
} from './envelope.ts'
import { toJsonSchema } from './json-schema.ts'
import type { RouteOptions } from './route.ts'
import type { ObjectSchema } from './validation.ts'

const integer = (description: string, minimum = 0) => ({
  description,
  schema: { type: 'integer', minimum },
})
const rate = {
  'X-RateLimit-Limit': integer('Requests allowed in the window.', 1),
  'X-RateLimit-Remaining': integer('Requests left in the window.'),
  'X-RateLimit-Reset': integer('Unix seconds at which the window ends.'),
}
const replay = {
  'X-Idempotent-Replay': {
    description: '`true` on the answer to a request that was made before.',
    schema: { type: 'string', enum: ['true'] },
  },
}
const retry = { 'Retry-After': integer('Seconds to wait before the next try.', 1) }
const always = {
  'X-Request-Id': {
    description: 'The id of this request.',
    schema: { type: 'string', format: 'uuid' },
  },
  'Cache-Control': {
    description: 'Always `no-store`.',
    schema: { type: 'string', const: 'no-store' },
  },
}
const challenge = {
  'WWW-Authenticate': {
    description: 'Always `Bearer`.',
    schema: { type: 'string', const: 'Bearer' },
  },
}

const BROKEN_RULE = 'A rule of the request is broken; `details` lists every failing field.'

/** The OpenAPI 3.1 operation of a route behind an API key. */
export function toKeyOperation(route: RouteOptions, scope: string): object {
  const { body, response = {} } = route
  const isScoped = scope !== 'any'
  const failure = (description: string, schema: TSchema = Failure, headers: object = {}) =>
    toResponse(description, schema, { has: { ...rate, ...headers } })
  return {
    ...route.detail,
    security: [{ apiKey: isScoped ? [scope] : [] }],
    parameters: [...toParameters(route), ...(body ? [IDEMPOTENCY_KEY] : [])],
    ...(body && { requestBody: toRequestBody(body) }),
    responses: {
      ...toSuccesses(response, { has: rate, ...(body && { mayHave: replay }) }),
      ...((body || route.query || route.params) && {
        400: failure(BROKEN_RULE, ValidationFailure),
      }),
      401: toResponse('The API key is missing or invalid.', Unauthorized, { has: challenge }),
      ...(isScoped && { 403: failure(`The key lacks the scope \`${scope}\`.`) }),
      ...(404 in response && { 404: failure('There is no such thing in this project.') }),
      ...(body && {
        408: failure('The body did not arrive in time.'),
        409: failure('A request with this Idempotency-Key is still running.', Failure, retry),
        413: failure('The body is over 256 KiB.'),
        415: failure('The body is not of the declared content type.'),
        422: failure('The Idempotency-Key was used for another request.'),
      }),
      429: failure('The rate limit of the key is exceeded.', RateLimited, retry),
      500: toResponse('A bug of the server.', InternalFailure, { mayHave: rate }),
      503: toResponse('The database cannot be reached in time.', Failure, {
        has: retry,
        mayHave: rate,
      }),
    },
  }
}

/** The OpenAPI 3.1 operation of a route of the dashboard; `action` is the permission that it takes. */
export function toSessionOperation(route: RouteOptions, action: string, isOpen: boolean): object {
  const { body, query, response = {} } = route
  return {
    ...route.detail,
    'x-action': action,
    security: isOpen ? [] : [{ session: [] }],
    parameters: toParameters(route),
    ...(body && { requestBody: toRequestBody(body) }),
    responses: {
      ...toSuccesses(response, {}),
      ...((body || query) && { 400: failure(BROKEN_RULE, ValidationFailure) }),
      401: failure('Nobody is signed in, or the password is wrong.'),
      403: failure('The role, the password or the page that asks is not enough.'),
      ...(404 in response && { 404: failure('There is no such thing.', ApiFailure) }),
      409: failure('Something else was changed meanwhile, or a bound is reached.'),
      ...(body && {
        408: failure('The body did not arrive in time.'),
        413: failure('The body is over 256 KiB.'),
        415: failure('The body is not of the declared content type.'),
      }),
      421: failure('The server is known by another name.'),
      429: toResponse('There were too many failed tries.', RateLimited, { has: retry }),
      500: failure('A bug of the server.', InternalFailure),
      503: toResponse('The database cannot be reached in time.', ApiFailure, { has: retry }),
    },
  }
}

/** Failures of every route of /api with a parameter in its path. */
export const PATH_FAILURES = {
  400: failure(BROKEN_RULE, ValidationFailure),
  404: failure('There is no such thing.'),
}

function failure(description: string, schema: TSchema = ApiFailure): object {
  return toResponse(description, schema, {})
}

function toParameters({ params, query }: RouteOptions): object[] {
  const all = (place: 'path' | 'query', schema: ObjectSchema | undefined) =>
    Object.entries(schema?.properties ?? {}).map(([name, one]) => toParameter(place, name, one))
  return [...all('path', params), ...all('query', query)]
}

/** A body of text may come as what `curl -d` says of it. */
function toRequestBody(body: TSchema): object {
  const { examples: [example] = [], ...schema } = body
  return {
    required: true,
    content:
      body.type === 'string'
        ? {
            'text/plain': { schema: toJsonSchema(schema), example },
            'application/x-www-form-urlencoded': { schema: toJsonSchema(schema) },
          }
        : {
            'application/json': {
              schema: toJsonSchema(body),
              ...(example !== undefined && { example }),
            },
          },
  }
}

/** The successes of a route: its failures are the same for every route of its kind. */
function toSuccesses(response: Readonly<Record<number, TSchema>>, headers: ResponseHeaders) {
  return Object.fromEntries(
    Object.entries(response)
      .filter(([status]) => Number(status) < 300)
      .map(([status, { description = 'Done.', ...schema }]) => [
        status,
        toResponse(description, schema as TSchema, headers),
      ]),
  )
}

// White space around it is not part of a header, and quotes around it are stripped.
const KEY_PATTERN = '^(?!""$)[\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?$'
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to retry: for 24 hours the same key gets the same answer and does nothing again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: KEY_PATTERN },
}

function toParameter(place: 'path' | 'query', name: string, schema: TSchema): object {
  const { description, ...rest } = toJsonSchema(schema) as Record<string, unknown>
  return {
    name,
    in: place,
    required: place === 'path',
    ...(description !== undefined && { description }),
    schema: rest,
  }
}

interface ResponseHeaders {
  /** Headers that every such response has. */
  has?: object
  mayHave?: object
}

function toResponse(
  description: string,
  schema: TSchema,
  { has = {}, mayHave = {} }: ResponseHeaders,
): object {
  const required = Object.entries({ ...always, ...has }).map(([name, header]) => [
    name,
    { ...header, required: true },
  ])
  return {
    description,
    headers: { ...Object.fromEntries(required), ...mayHave },
    content: { 'application/json': { schema: toJsonSchema(schema) } },
  }
}
