import { Kind, type TSchema } from '@sinclair/typebox'
import { NotFoundError } from 'elysia'
import { readJson, readText, type BodyLimits } from './body.ts'
import type { Call } from './call.ts'
import { findIssues, Text, type Issue } from './rules.ts'
import { readParams, readQuery, toPathname, type DecodedValues } from './url.ts'
import { InvalidRequest, type ObjectSchema } from './validation.ts'

const PLAIN = Text({ minLength: 1, maxLength: 255 })

/** The options of a route, as they stand before Elysia reads them. */
export interface RouteOptions {
  body?: TSchema
  query?: ObjectSchema
  params?: ObjectSchema
  /** The envelopes that it answers with, by status. */
  response?: Readonly<Record<number, TSchema>>
  detail?: RouteDetail
}

/** The words of a route in the OpenAPI document. */
interface RouteDetail {
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
}

/**
 * Rewrites the options of a route for Elysia; returns them as they were. `@elysiajs/swagger` would document a body under
 * three content types of its own choice, so the schema of the body goes where only Elysia's compiler looks, and
 * `operation` documents it. Answers are text that the handler made: their schemas serve the types and the document.
 */
export function prepareRoute(
  options: RouteOptions,
  toOperation: (route: RouteOptions) => object,
): RouteOptions {
  const route = { ...options }
  options.detail = toOperation(route)
  // The schema of a text describes what its fields come to: the handler takes it apart and checks them.
  if (options.body && options.body.type !== 'string') {
    Object.assign(options, { standaloneValidator: [{ body: toOpenSchema(options.body) }] })
  }
  delete options.body
  delete options.response
  return route
}

/**
 * The schema of a body that ignores unknown properties. Defaults are documentation: Elysia would merge them by
 * `Object.assign`, for which a property `__proto__` is the prototype.
 */
function toOpenSchema(body: TSchema): TSchema {
  const properties = Object.entries((body as ObjectSchema).properties).map(([name, schema]) => {
    const { default: _, ...rest } = schema
    return [name, rest]
  })
  const open = { ...body, properties: Object.fromEntries(properties), additionalProperties: true }
  return withErrors(open) as TSchema
}

/**
 * Gives every schema in `value` an error of its own. The error of a schema without one quotes the whole body, indented,
 * and once more for each broken rule: tens of megabytes for one deep body.
 */
function withErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withErrors)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.entries(value).map(([name, one]) => [name, withErrors(one)])
  return { ...value, ...Object.fromEntries(inner), ...(Kind in value && { error: '' }) }
}

/**
 * Elysia's parse hook of every route with a guard. The guard reads the body itself, after it has admitted the request:
 * `@elysiajs/bearer` knows the token only in the transform step, and a 401 may not wait for a body.
 */
export function deferBody(): null {
  return null
}

/** A request, and the call and the route that it belongs to. */
export interface IncomingRequest {
  request: Request
  call: Call
  route: RouteOptions
}

/** Notes that `path` is the route of the call, and reads the parameters in it. */
export function readPath(
  { request, call, route }: IncomingRequest,
  path: string,
): DecodedValues['values'] {
  // Elysia answers HEAD by the route of GET, which would take a request of the rate limit.
  if (request.method === 'HEAD') throw new NotFoundError()
  call.route = path
  if (!path.includes(':')) return {}
  const { values, issues } = readParams(path, toPathname(request.url))
  call.issues = route.params ? issues : [...issues, ...checkPlain(values)]
  return values
}

/** The issues of parameters without a schema: ids, and names that are looked up. */
function checkPlain(values: Readonly<Record<string, unknown>>): Issue[] {
  return Object.entries(values).flatMap(([name, value]) =>
    (findIssues(PLAIN, value) ?? []).map(found => ({ ...found, path: [name] })),
  )
}

/** Reads the query and the body of a request that was admitted. Throws `Fault` (408, 413, 415) or `Invalid`. */
export async function readInput(
  { request, call, route: { query, body } }: IncomingRequest,
  limits: BodyLimits & { isTypeRequired?: boolean },
): Promise<{ query?: unknown; body?: unknown }> {
  const asked = query && readQuery(query, request.url)
  if (asked) call.issues = [...call.issues, ...asked.issues]
  const input = asked ? { query: asked.values } : {}
  if (!body) return input
  if (body.type === 'string') return { ...input, body: await readText(request, limits) }
  const { value, issues } = await readJson(request, limits)
  if (issues.length > 0) call.issues = [...call.issues, ...issues]
  return { ...input, body: value }
}

/**
 * The result of a transform step that adds `values` to the context, where Elysia validates them. Its types do not tell. A
 * guard hands no context on: Elysia would prepare everything that a context can have.
 */
export function toContext(values: object): void {
  return values as unknown as undefined
}

/** Throws `Invalid` for texts that no schema looks at. */
export function checkIssues({ issues }: Call): void {
  if (issues.length > 0) throw new InvalidRequest(issues)
}
