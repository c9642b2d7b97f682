import { Kind, type TSchema } from '@sinclair/typebox'
import { NotFoundError } from 'elysia'
import {
  LARGE_BYTES_OF_STRANGER,
  readJson,
  readText,
  STRANGERS,
  toDeclaredBytes,
  type BodyLimits,
  type BodyOptions,
} from './body.ts'
import { hold, type Call } from './call.ts'
import type { RequestMemory } from './request-memory.ts'
import { FIND_MISTAKE, findIssues, NO_ISSUES, Text, type FindMistake, type Issue } from './rules.ts'
import { readParams, readQuery, toPathname, type DecodedValues } from './url.ts'
import { InvalidRequest, type ObjectSchema } from './validation.ts'

const PLAIN = Text({ minLength: 1, maxLength: 255 })

/** The options of a route before Elysia reads them. */
export interface RouteOptions {
  body?: TSchema
  query?: ObjectSchema
  params?: ObjectSchema
  /** The schemas of its response envelopes, by status. */
  response?: Readonly<Record<number, TSchema>>
  detail?: RouteDetail
}

/** The name and texts of a route in the OpenAPI document. */
interface RouteDetail {
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
}

/**
 * Rewrites the options of a route for Elysia, and returns a copy of the original ones. The body's
 * schema moves to `standaloneValidator`, because `@elysiajs/swagger` would document it under three
 * content types. `toOperation` documents it instead. Response schemas serve only types and
 * documentation: handlers return JSON text.
 */
export function prepareRoute(
  options: RouteOptions,
  toOperation: (route: RouteOptions) => object,
): RouteOptions {
  const route = { ...options }
  options.detail = toOperation(route)
  // A text body's schema describes the fields in the text. The handler parses and checks them.
  if (options.body && options.body.type !== 'string') {
    Object.assign(options, { standaloneValidator: [{ body: toOpenSchema(options.body) }] })
  }
  delete options.body
  delete options.response
  return route
}

/**
 * Returns a schema that ignores unknown properties and has no defaults. Elysia would apply defaults
 * by `Object.assign`, which lets a property `__proto__` set the prototype.
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
 * Gives every schema in `value` an empty error message. Elysia's default message quotes the whole
 * body once per broken rule, which takes tens of megabytes for one deep body.
 */
function withErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withErrors)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.entries(value).map(([name, one]) => [name, withErrors(one)])
  return { ...value, ...Object.fromEntries(inner), ...(Kind in value && { error: '' }) }
}

/**
 * The parse hook of every route with a guard: it leaves the body unread. The guard reads it in the
 * transform step, after admission. Only there does `@elysiajs/bearer` provide the token, and a 401
 * must not wait for a body.
 */
export function deferBody(): null {
  return null
}

/** A request with its call and route. */
export interface IncomingRequest {
  request: Request
  call: Call
  route: RouteOptions
}

/** Sets the route of the call to `path`, and returns its path parameters. */
export function readPath(
  { request, call, route }: IncomingRequest,
  path: string,
): DecodedValues['values'] {
  // Elysia serves HEAD with the route of GET, which would count against the rate limit.
  if (request.method === 'HEAD') throw new NotFoundError()
  call.route = path
  if (!path.includes(':')) return {}
  const { values, issues } = readParams(path, toPathname(request.url))
  call.issues = route.params ? issues : [...issues, ...checkPlain(values)]
  return values
}

/** Returns the issues with path parameters that have no schema, such as ids. */
function checkPlain(values: Readonly<Record<string, unknown>>): Issue[] {
  return Object.entries(values).flatMap(([name, value]) =>
    (findIssues(PLAIN, value) ?? []).map(found => ({ ...found, path: [name] })),
  )
}

/** How the guards read requests. */
export interface InputLimits extends BodyLimits {
  memory: RequestMemory
}

/**
 * Reads query and body of an admitted request. The request of a known caller, and a large one of a
 * stranger, takes memory until its response. Throws `Fault` (408, 413, 415, 503) or
 * `InvalidRequest`.
 */
export async function readInput(
  { request, call, route: { query, body } }: IncomingRequest,
  { memory, ...options }: InputLimits & BodyOptions,
): Promise<{ query?: unknown; body?: unknown }> {
  if (options.caller !== undefined) {
    const { resize, release } = memory.reserve(options.caller, body ? toDeclaredBytes(request) : 0)
    hold(call, release)
    options.onArrived = resize
  } else {
    // Before it has arrived, a slow body would keep others from sending theirs.
    options.onArrived = bytes => {
      if (bytes > LARGE_BYTES_OF_STRANGER) hold(call, memory.reserve(STRANGERS, bytes).release)
    }
  }
  // The handler reads a foreign query.
  const read = readQuery(query?.properties ?? {}, options.isForeign ? '' : request.url)
  if (read.issues.length > 0) call.issues = [...call.issues, ...read.issues]
  const input = query ? { query: read.values } : {}
  if (!body) return input
  if (body.type === 'string') return { ...input, body: await readText(request, options) }
  const { value, issues } = await readJson(request, options)
  const { [FIND_MISTAKE]: findMistake } = body as { [FIND_MISTAKE]?: FindMistake }
  const mistakes = findMistake?.(value) ?? NO_ISSUES
  if (issues.length + mistakes.length > 0) call.issues = [...call.issues, ...mistakes, ...issues]
  return { ...input, body: value }
}

/**
 * Returns `values` as the result of a transform step. Elysia merges them into the context and
 * validates them, although its types do not say so. Guards must not pass the context itself to a
 * function: Elysia would then parse everything that a context can hold.
 */
export function toContext(values: object): void {
  return values as unknown as undefined
}

/** Throws `InvalidRequest` if the call has issues. */
export function checkIssues({ issues }: Call): void {
  if (issues.length > 0) throw new InvalidRequest(issues)
}
