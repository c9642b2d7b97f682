import type { TSchema } from '@sinclair/typebox'
import {
  Failure,
  InternalFailure,
  RateLimited,
  SuccessOf,
  Unauthorized,
  ValidationFailure,
} from './envelope.ts'
import { refer } from './json-schema.ts'
import type { ObjectSchema } from './validation.ts'

/** What operations are about. */
export const TAGS = {
  Events: 'What happened. Events are kept in one log per project.',
  Identities: 'Who your users are, and the other names that they go by.',
  Channels: 'The named streams that events are sent to.',
  Keys: 'What an API key opens.',
}

/** Everything that an endpoint promises: it is validated at run time and becomes its OpenAPI operation. */
export interface Contract {
  method: 'GET' | 'POST' | 'DELETE'
  /** With parameters as `:name`. */
  path: `/v1/${string}`
  operationId: string
  summary: string
  description?: string
  tag: keyof typeof TAGS
  /** The scope that the key needs; any key will do without. */
  scope?: string
  params?: Record<string, TSchema>
  query?: ObjectSchema
  /** A JSON body, or plain text. */
  body?: TSchema | 'text'
  /** What a body of plain text is like. */
  text?: TSchema
  example?: unknown
  success: { status: 200 | 201; description: string; data: TSchema }
  /** Whether there may be nothing to answer with. */
  hasNotFound?: boolean
}

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

/** The OpenAPI 3.1 operation of a contract. */
export function toOperation(contract: Contract): Record<string, unknown> {
  const { success, body, query, params, scope } = contract
  const isWrite = contract.method === 'POST'
  return {
    operationId: contract.operationId,
    summary: contract.summary,
    ...(contract.description && { description: contract.description }),
    tags: [contract.tag],
    security: [{ apiKey: scope ? [scope] : [] }],
    parameters: [
      ...Object.entries(params ?? {}).map(([name, schema]) =>
        parameter('path', name, schema, true),
      ),
      ...Object.entries(query?.properties ?? {}).map(([name, schema]) =>
        parameter('query', name, schema, false),
      ),
      ...(isWrite ? [IDEMPOTENCY_KEY] : []),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content:
          body === 'text'
            ? {
                'text/plain': { schema: refer(contract.text), example: contract.example },
                'application/x-www-form-urlencoded': { schema: refer(contract.text) },
              }
            : { 'application/json': { schema: refer(body), example: contract.example } },
      },
    }),
    responses: {
      [success.status]: response(success.description, SuccessOf(success.data), {
        has: rate,
        ...(isWrite && { mayHave: replay }),
      }),
      ...((body || query || params) && {
        400: response(
          'A rule of the request is broken; `details` lists every failing field.',
          ValidationFailure,
          { has: rate },
        ),
      }),
      401: response('The API key is missing or invalid.', Unauthorized, { has: challenge }),
      ...(scope && {
        403: response(`The key lacks the scope \`${scope}\`.`, Failure, { has: rate }),
      }),
      ...(contract.hasNotFound && {
        404: response('There is no such thing in this project.', Failure, { has: rate }),
      }),
      ...(body && {
        408: response('The body did not arrive in time.', Failure, { has: rate }),
        409: response('A request with this Idempotency-Key is still running.', Failure, {
          has: { ...rate, ...retry },
        }),
        413: response('The body is over 256 KiB.', Failure, { has: rate }),
        415: response('The body is not of the declared content type.', Failure, { has: rate }),
        422: response('The Idempotency-Key was used for another request.', Failure, { has: rate }),
      }),
      429: response(
        'The rate limit is exceeded; without its headers, that of failed authentications.',
        RateLimited,
        { has: retry, mayHave: rate },
      ),
      500: response('A bug of the server.', InternalFailure, { mayHave: rate }),
      503: response('The database cannot be reached in time.', Failure, {
        has: retry,
        mayHave: rate,
      }),
    },
  }
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

function parameter(place: 'path' | 'query', name: string, schema: TSchema, required: boolean) {
  const { description, ...rest } = refer(schema) as Record<string, unknown>
  return {
    name,
    in: place,
    required,
    ...(description !== undefined && { description }),
    schema: rest,
  }
}

interface ResponseHeaders {
  /** Headers that every such response has. */
  has?: object
  mayHave?: object
}

function response(
  description: string,
  schema: TSchema,
  { has = {}, mayHave = {} }: ResponseHeaders,
) {
  const required = Object.entries({ ...always, ...has }).map(([name, header]) => [
    name,
    { ...header, required: true },
  ])
  return {
    description,
    headers: { ...Object.fromEntries(required), ...mayHave },
    content: { 'application/json': { schema: refer(schema) } },
  }
}
