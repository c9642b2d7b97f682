import fc, { type Arbitrary } from 'fast-check'
import { valueOf, type Overlay } from './arbitraries.ts'
import type { Operation, Parameter, Schema } from './operations.ts'
import { spell } from './spelling.ts'
import { momentUpTo, textOf } from './texts.ts'
import { brokenNumber, brokenText, violationsOf, type Violation } from './violations.ts'

/** A request to an operation, before it is bytes. */
export interface ApiRequest {
  id: string
  method: string
  /** The path with its parameters in place, and the query. */
  target: string
  params: Record<string, string>
  query: Record<string, string>
  headers: [name: string, value: string][]
  /** Text; undefined where there is no body. */
  body?: string
  /** What a JSON body says. */
  json?: Record<string, unknown>
  /** Chooses among what the server has, and what is done afterwards. */
  choice: number
}

export type BrokenRequest = ApiRequest & { violation: Violation }

const PEOPLE = ['ada', 'bob', 'ADA', 'a b/c?d#e', '%2F', 'é', '🦊'] as const
const person = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<string>(...PEOPLE) },
  { weight: 1, arbitrary: textOf({ minLength: 1, maxLength: 255 }) },
)
/** Text that a URL's path can carry: dot segments would be resolved by the client, or the server. */
const inPath = (text: string) => !/^(\.|%2e){1,2}$/i.test(text)

/** What the document says in words only: nothing happens in the future, and people turn up again. */
const OVERLAY: Record<string, Overlay> = {
  createEvent: {
    timestamp: momentUpTo(2025),
    userId: fc.option(person, { freq: 6, nil: null }),
  },
  logEvent: {
    timestamp: fc.oneof(
      fc.integer({ min: 0, max: 1.7e9 }),
      fc.double({ min: 0, max: 1.7e9, noNaN: true }),
    ),
    user_id: person,
  },
  identify: {
    user_id: person,
    aliases: fc.uniqueArray(person, { maxLength: 50, size: 'medium', selector: String }),
  },
}

/** A request that keeps every rule of the document. */
export function requestOf(operation: Operation): Arbitrary<ApiRequest> {
  return fc
    .record({
      values: parametersOf(operation),
      body: bodyOf(operation),
      choice: fc.nat({ max: 999 }),
      style: fc.nat(),
    })
    .map(parts => toRequest(operation, parts))
}

interface Parts {
  values: Record<string, unknown>
  body: { type: string; value: unknown } | undefined
  choice: number
  style: number
}

function toRequest(operation: Operation, { values, body, choice, style }: Parts): ApiRequest {
  const { id, method, path, parameters } = operation
  const pick = (place: Parameter['in']) =>
    Object.fromEntries(
      parameters
        .filter(({ name, in: where }) => where === place && values[name] !== undefined)
        .map(({ name }) => [name, String(values[name])]),
    )
  const params = pick('path')
  const query = pick('query')
  const headers = Object.entries(pick('header'))
  if (body) headers.push(['Content-Type', body.type])
  const isJson = typeof body?.value === 'object'
  const request: ApiRequest = {
    id,
    method,
    target: toTarget(path, params, query, style),
    params,
    query,
    headers,
    ...(body && {
      body: isJson ? spell(body.value, style % 3 === 0 ? 0 : style) : String(body.value),
    }),
    ...(isJson && { json: body.value as Record<string, unknown> }),
    choice,
  }
  return Object.defineProperty(request, fc.toStringMethod, { value: () => describe(request) })
}

/** A path and query; `style` varies how spaces are written. */
export function toTarget(
  path: string,
  params: Record<string, string>,
  query: Record<string, string>,
  style = 0,
): string {
  const encode = (text: string) => encodeURIComponent(text.toWellFormed())
  const pairs = Object.entries(query).map(
    ([name, value]) =>
      `${name}=${style % 2 === 0 ? encode(value) : encode(value).replaceAll('%20', '+')}`,
  )
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encode(params[name] ?? ''))
  return pairs.length > 0 ? `${filled}?${pairs.join('&')}` : filled
}

function parametersOf({ parameters }: Operation): Arbitrary<Record<string, unknown>> {
  const fields = parameters
    // A cursor is what the server gave: those are followed elsewhere.
    .filter(({ name }) => name !== 'cursor')
    .map(({ name, in: place, schema }): [string, Arbitrary<unknown>] => {
      const value = name === 'userId' ? person : named(name, valueOf(schema))
      return [name, place === 'path' ? value.filter(text => inPath(String(text))) : value]
    })
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name)
  return fc.record(Object.fromEntries(fields), { requiredKeys })
}

function bodyOf({ id, bodies }: Operation): Arbitrary<Parts['body']> {
  if (bodies.length === 0) return fc.constant(undefined)
  return fc.oneof(
    ...bodies.map(([type, schema]) =>
      bodyValueOf(id, schema).map(value => ({ type, value: agree(value) })),
    ),
  )
}

function bodyValueOf(id: string, schema: Schema): Arbitrary<unknown> {
  const channel = schema.properties?.['channelName'] ?? schema.properties?.['channel']
  const names = channel && named('name', valueOf(channel))
  return valueOf(schema, { ...(names && { channelName: names, channel: names }), ...OVERLAY[id] })
}

/** The document: a name is measured in its composed form. */
function named(name: string, value: Arbitrary<unknown>): Arbitrary<unknown> {
  return name === 'name'
    ? value.filter(text => [...String(text).normalize('NFC')].length <= 255)
    : value
}

/** The document: userId is another name of user_id, and they agree. */
function agree(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('user_id' in value) || !('userId' in value))
    return value
  return { ...value, userId: value.user_id }
}

/** Requests that break one rule each: one arbitrary for each rule of the operation. */
export function brokenRequestsOf(operation: Operation): Arbitrary<BrokenRequest>[] {
  const valid = fc.record({
    values: parametersOf(operation),
    body: bodyOf(operation),
    choice: fc.constant(0),
    style: fc.nat(),
  })
  const bodies = operation.bodies.flatMap(([type, schema]) =>
    schema.properties
      ? violationsOf(schema, OVERLAY[operation.id]).map(broken =>
          fc.tuple(valid, broken).map(([parts, violation]) => ({
            parts: { ...parts, body: { type, value: violation.value } },
            violation,
          })),
        )
      : [],
  )
  const parameters = operation.parameters.flatMap(({ name, in: place, schema }) =>
    brokenParameter(schema, place).map(broken =>
      fc.tuple(valid, broken).map(([parts, violation]) => ({
        parts: { ...parts, values: { ...parts.values, [name]: violation.value } },
        violation: { ...violation, path: [name] },
      })),
    ),
  )
  return [...bodies, ...parameters].map(broken =>
    broken.map(({ parts, violation }) => {
      const request = toRequest(operation, parts)
      const describeBoth = () =>
        `${violation.rule} at ${violation.path.join('.')}: ${describe(request)}`
      return Object.defineProperty({ ...request, violation }, fc.toStringMethod, {
        value: describeBoth,
      })
    }),
  )
}

function brokenParameter(schema: Schema, place: Parameter['in']): Arbitrary<Violation>[] {
  const toParameter = (rule: string, code: string, ...values: string[]) =>
    fc.constantFrom(...values).map(value => ({ rule, code, path: [], value }))
  if (schema.type === 'integer') {
    return [
      toParameter('type', 'invalid_type', 'abc', '1.5', '1e3', ' 1', '0x10', '', '１', '1,2', '+1'),
      ...brokenNumber(schema)
        .map(one => one.filter(({ value }) => typeof value === 'number'))
        .slice(1),
    ]
  }
  // Without text a path is another one.
  const text = brokenText(place === 'path' ? { ...schema, minLength: 0 } : schema)
  if (place === 'header') return text.map(one => one.filter(isHeaderValue))
  const hasRules = schema.maxLength !== undefined || schema.format !== undefined
  return hasRules
    ? [...text, toParameter('unstorable', 'invalid_encoding', '\u0000', 'a\u0000')]
    : text
}

function isHeaderValue({ value }: Violation): boolean {
  return /^[\t\x20-\x7e\xa0-\xff]*$/.test(String(value))
}

export function describe({ method, target, headers, body }: ApiRequest): string {
  const text =
    body !== undefined && body.length > 600 ? `${body.slice(0, 600)}… (${body.length})` : body
  return `${method} ${target} ${JSON.stringify(headers)} ${text ?? ''}`
}
