import fc, { type Arbitrary } from 'fast-check'
import { valueOf } from './arbitraries.ts'
import type { Operation, Parameter, Schema } from './operations.ts'
import { parse, spell } from './spelling.ts'
import { brokenNumber, brokenText, violationsOf, type Violation } from './violations.ts'
import { brokenInWords, BROKEN_CURSORS, BROKEN_TEXTS, overlayOf, parameterOf } from './words.ts'

/** A request to an operation, before it is bytes. */
export interface ApiRequest {
  id: string
  method: string
  /** The path with its parameters filled in, and the query. */
  target: string
  params: Record<string, string>
  query: Record<string, string>
  headers: [name: string, value: string][]
  /** Text; undefined without a body. */
  body?: string
  /** The value of a JSON body. */
  json?: Record<string, unknown>
  /** Selects an existing resource and the follow-up action. */
  choice: number
}

export type BrokenRequest = ApiRequest & { violation: Violation }

/** Requests that satisfy every rule of the document. */
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
  const isJson = body?.type === 'application/json'
  const text =
    body && (isJson ? spell(body.value, style % 3 === 0 ? 0 : style) : String(body.value))
  const request: ApiRequest = {
    id,
    method,
    target: toTarget(path, params, query, style),
    params,
    query,
    headers,
    ...(text !== undefined && { body: text }),
    ...(isJson && { json: parse(text ?? '') }),
    choice,
  }
  return Object.defineProperty(request, fc.toStringMethod, { value: () => describe(request) })
}

/** Returns a path and query; `style` varies how spaces are written. */
function toTarget(
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
    // A cursor comes from the server: other tests follow cursors.
    .filter(({ name }) => name !== 'cursor')
    .map(({ name, in: place, schema }): [string, Arbitrary<unknown>] => [
      name,
      parameterOf(name, place, schema),
    ])
  const required = parameters.filter(one => one.required).map(({ name }) => name)
  const optional = fields.map(([name]) => name).filter(name => !required.includes(name))
  // All filters at once would find nothing.
  const given = fc.subarray(optional, { maxLength: Math.min(2, optional.length) })
  return fc.tuple(fc.record(Object.fromEntries(fields)), given).map(([values, names]) => {
    const chosen = [...required, ...names]
    return Object.fromEntries(Object.entries(values).filter(([name]) => chosen.includes(name)))
  })
}

function bodyOf({ id, bodies }: Operation): Arbitrary<Parts['body']> {
  if (bodies.length === 0) return fc.constant(undefined)
  return fc.oneof(
    ...bodies.map(([type, schema]) =>
      valueOf(schema, overlayOf(id, schema)).map(value => ({ type, value })),
    ),
  )
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
    brokenBodiesOf(operation.id, schema).map(broken =>
      fc.tuple(valid, broken).map(([parts, violation]) => ({
        parts: { ...parts, body: { type, value: violation.value } },
        violation,
      })),
    ),
  )
  const parameters = operation.parameters.flatMap(({ name, in: place, schema }) =>
    brokenParameter(name, schema, place).map(broken =>
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

function brokenBodiesOf(id: string, schema: Schema): Arbitrary<Violation>[] {
  if (schema.properties === undefined) return [fc.constantFrom(...BROKEN_TEXTS)]
  return [...violationsOf(schema, overlayOf(id, schema)), ...brokenInWords(id, schema)]
}

function brokenParameter(
  name: string,
  schema: Schema,
  place: Parameter['in'],
): Arbitrary<Violation>[] {
  const toParameter = (rule: string, code: string, ...values: string[]) =>
    fc.constantFrom(...values).map(value => ({ rule, code, path: [], value }))
  if (schema.type === 'integer') {
    return [
      toParameter('type', 'invalid_type', 'abc', '1.5', '1e3', ' 1', '0x10', '', '１', '1,2', '+1'),
      // The first is a number whose text is no integer.
      ...brokenNumber(schema)
        .slice(1)
        .map(one => one.map(broken => ({ ...broken, value: spell(broken.value) }))),
    ]
  }
  // An empty parameter makes a different path.
  const text = brokenText(place === 'path' ? { ...schema, minLength: 0 } : schema).map(one =>
    // The platform refuses longer ones.
    one.filter(({ value }) => encodeURIComponent(String(value)).length < 8_000),
  )
  if (name === 'cursor') text.push(toParameter('in words', 'invalid_format', ...BROKEN_CURSORS))
  if (place === 'header') return text.map(one => one.filter(isHeaderValue))
  return schema.maxLength !== undefined
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
