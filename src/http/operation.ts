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
  'X-RateLimit-Limit': integer('Requests allowed per window.', 1),
  'X-RateLimit-Remaining': integer('Requests left in the window.'),
  'X-RateLimit-Reset': integer('Unix seconds at which the window ends.'),
}
const replay = {
  'X-Idempotent-Replay': {
    description: '`true` if this is the stored response to an earlier request.',
    schema: { type: 'string', enum: ['true'] },
  },
}
const retry = { 'Retry-After': integer('Seconds to wait before retrying.', 1) }
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

/** The security schemes of /api. */
export type ApiCredential = 'session' | 'token'

const TEXT_BODY = 'Plain text. A form, as `curl -d` sends it, is read as plain text too.'
const INVALID = 'The request is invalid. `details` lists every failing field.'

/** Returns the OpenAPI 3.1 operation of a route that requires an API key with `scope`. */
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
      400: failure(INVALID, ValidationFailure),
      401: toResponse('The API key is missing or invalid.', Unauthorized, { has: challenge }),
      ...(isScoped && { 403: failure(`The key lacks the scope \`${scope}\`.`) }),
      ...(404 in response && { 404: failure('The project has nothing with this id.') }),
      ...(body && {
        408: failure('The body did not arrive in time.'),
        409: failure('A request with this Idempotency-Key is still running.', Failure, retry),
        413: failure('The body is larger than 256 KiB.'),
        415: failure('The Content-Type is not supported.'),
        422: failure('The Idempotency-Key was used for another request.'),
      }),
      429: failure('The rate limit of the key is exceeded.', RateLimited, retry),
      500: toResponse('An internal error.', InternalFailure, { mayHave: rate }),
      503: toResponse('The database cannot be reached in time.', Failure, {
        has: retry,
        mayHave: rate,
      }),
    },
  }
}

/**
 * Returns the OpenAPI 3.1 operation of a route of /api. `action` is the permission that it
 * requires. Without credentials, the route is open to anyone.
 */
export function toSessionOperation(
  route: RouteOptions,
  { action, credentials }: { action: string; credentials: readonly ApiCredential[] },
): object {
  const { body, response = {} } = route
  const mayHave = credentials.includes('token') ? rate : {}
  const failure = (description: string, schema: TSchema = ApiFailure) =>
    toResponse(description, schema, { mayHave })
  return {
    ...route.detail,
    'x-action': action,
    // Generated clients take the first credential that they have.
    security: credentials.toReversed().map(name => ({ [name]: [] })),
    parameters: toParameters(route),
    ...(body && { requestBody: toRequestBody(body) }),
    responses: {
      ...toSuccesses(response, { mayHave }),
      400: failure(INVALID, ValidationFailure),
      401: failure('The request has no valid session or token, or the password is wrong.'),
      403: failure(
        'The role is too low, the password must be entered again, or the request is cross-site.',
      ),
      ...(404 in response && { 404: failure('Nothing has this id.') }),
      409: failure('The request conflicts with another change, or a limit is reached.'),
      ...(body && {
        408: failure('The body did not arrive in time.'),
        413: failure(`The body is larger than ${credentials.length === 0 ? 32 : 256} KiB.`),
        415: failure('The Content-Type is not supported.'),
      }),
      421: failure('The Host header names another server.'),
      429: toResponse('There were too many failed attempts or requests.', RateLimited, {
        has: retry,
        mayHave,
      }),
      500: failure('An internal error.', InternalFailure),
      503: toResponse('The database cannot be reached in time.', ApiFailure, {
        has: retry,
        mayHave,
      }),
    },
  }
}

/** Failures of every route of /api with a parameter in its path. */
export const PATH_FAILURES = {
  400: failure(INVALID, ValidationFailure),
  404: failure('Nothing has this id.'),
}

function failure(description: string, schema: TSchema = ApiFailure): object {
  return toResponse(description, schema, {})
}

function toParameters({ params, query }: RouteOptions): object[] {
  const all = (place: 'path' | 'query', schema: ObjectSchema | undefined) =>
    Object.entries(schema?.properties ?? {}).map(([name, one]) =>
      toParameter(place, name, one, schema?.['required']?.includes(name) ?? false),
    )
  return [...all('path', params), ...all('query', query)]
}

/**
 * A text body may also have the content type that `curl -d` sends. It has no schema there, because
 * a proxy that validates would parse the text as a form.
 */
function toRequestBody(body: TSchema): object {
  const { examples: [example] = [], ...schema } = body
  const isText = body.type === 'string'
  return {
    required: true,
    ...(isText && { description: TEXT_BODY }),
    content: isText
      ? {
          'text/plain': { schema: toJsonSchema(schema), example },
          'application/x-www-form-urlencoded': {},
        }
      : {
          'application/json': {
            schema: toJsonSchema(body),
            ...(example !== undefined && { example }),
          },
        },
  }
}

/** Returns the successful responses of a route. Failures do not depend on the route. */
function toSuccesses(response: Readonly<Record<number, TSchema>>, headers: ResponseHeaders) {
  return Object.fromEntries(
    Object.entries(response)
      .filter(([status]) => Number(status) < 300)
      .map(([status, { description = 'Done.', contentType, ...schema }]) => [
        status,
        toResponse(description, schema as TSchema, headers, contentType),
      ]),
  )
}

// Excludes surrounding white space, which is not part of a header, and a comma before a space, with
// which two headers are joined.
const VISIBLE = '[\\x21-\\x2b\\x2d-\\x7e]'
const KEY_PATTERN = `^(?:,+|,*${VISIBLE}(?: *,*${VISIBLE})*(?: *,+)?)$`
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to retry. For 24 hours, requests with the same key return the stored response and have no other effect. Quotes around a key are removed, and it must not be empty.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: KEY_PATTERN },
}

function toParameter(
  place: 'path' | 'query',
  name: string,
  schema: TSchema,
  isRequired: boolean,
): object {
  const { description, ...rest } = toJsonSchema(schema) as Record<string, unknown>
  return {
    name,
    in: place,
    required: isRequired,
    ...(description !== undefined && { description }),
    schema: rest,
  }
}

interface ResponseHeaders {
  /** Headers of every such response. */
  has?: object
  mayHave?: object
}

function toResponse(
  description: string,
  schema: TSchema,
  { has = {}, mayHave = {} }: ResponseHeaders,
  contentType = 'application/json',
): object {
  const required = Object.entries({ ...always, ...has }).map(([name, header]) => [
    name,
    { ...header, required: true },
  ])
  return {
    description,
    headers: { ...Object.fromEntries(required), ...mayHave },
    content: { [contentType]: { schema: toJsonSchema(schema) } },
  }
}
