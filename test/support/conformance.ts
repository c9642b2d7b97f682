import addFormats from 'ajv-formats'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** An answer of /v1, with its request. */
export interface Exchange {
  url: string
  method: string
  status: number
  /** Called with names in lower case. */
  headers: { get(name: string): string | null | undefined }
  text: string
}

interface Header {
  required?: boolean
}

interface Operation {
  operationId: string
  responses: Record<string, { headers: Record<string, Header> }>
}

interface Document {
  paths: Record<string, Record<string, Operation>>
}

type Check = (exchange: Exchange) => string | undefined

const checks = new Map<string, Promise<Check>>()
const checksByDocument = new Map<string, Check>()

/** Throws unless the OpenAPI document declares the answer; returns the operation's id, if any. */
export async function checkDeclared(exchange: Exchange): Promise<string | undefined> {
  const { origin } = new URL(exchange.url)
  let check = checks.get(origin)
  if (!check) {
    check = loadCheck(origin)
    checks.set(origin, check)
  }
  return (await check)(exchange)
}

/** Returns every declared pair of an operation and a status, as `createEvent 201`. */
export function listDeclared({ paths }: Document): string[] {
  return Object.values(paths)
    .flatMap(item => Object.values(item))
    .flatMap(({ operationId, responses }) =>
      Object.keys(responses).map(status => `${operationId} ${status}`),
    )
}

async function loadCheck(origin: string): Promise<Check> {
  const { servers: _, ...document } = (await (await fetch(`${origin}/openapi.json`)).json()) as any
  const text = JSON.stringify(document)
  const check = checksByDocument.get(text) ?? createCheck(document)
  checksByDocument.set(text, check)
  return check
}

/** Returns a function that says why a value breaks the schema at a pointer into a document. */
export function createSchemaCheck(document: object) {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, logger: false })
  addFormats.default(ajv)
  ajv.addFormat('emoji', true)
  ajv.addSchema(document, 'document')
  const compiled = new Map<string, ValidateFunction>()
  return (value: unknown, pointer: readonly string[]): string | undefined => {
    const ref = `document#${pointer.map(toSegment).join('')}`
    const validate = compiled.get(ref) ?? ajv.compile({ $ref: ref })
    compiled.set(ref, validate)
    return validate(value) ? undefined : ajv.errorsText(validate.errors)
  }
}

function createCheck(document: Document): Check {
  const findProblem = createSchemaCheck(document)
  function expectValid(value: unknown, pointer: readonly string[], what: string): void {
    const problem = findProblem(value, pointer)
    if (problem !== undefined) fail(`${what}: ${problem}`)
  }

  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`),
      pointer: ['paths', path, method, 'responses'],
      operation,
    })),
  )
  const headerNames = new Set([
    'Allow',
    ...operations.flatMap(({ operation }) =>
      Object.values(operation.responses).flatMap(({ headers }) => Object.keys(headers)),
    ),
  ])

  return exchange => {
    const { status, method, headers, text } = exchange
    const { pathname } = new URL(exchange.url)
    // Over its own limits the platform answers with an empty body.
    if (text === '' && headers.get('x-request-id') == null) return undefined
    const found = operations.find(one => one.method === method && one.pattern.test(pathname))
    const what = `${method} ${pathname} answered ${status}`

    if (method === 'HEAD') return undefined
    if (headers.get('content-type') !== 'application/json; charset=utf-8') fail(`${what} no JSON`)
    const body: unknown = JSON.parse(text)
    if (!found || isBadHost(body)) {
      const name = { 400: 'ValidationFailure', 404: 'Failure', 405: 'Failure' }[status]
      if (name === undefined) fail(`${what}, which comes after routing`)
      expectValid(body, ['components', 'schemas', name], what)
      if ((status === 405) !== (headers.get('allow') != null)) fail(`${what}, Allow does not fit`)
      return undefined
    }

    const { operation, pointer } = found
    const declared = operation.responses[status]
    if (!declared) fail(`${what}, which is not declared`)
    const response = [...pointer, String(status)]
    expectValid(body, [...response, 'content', 'application/json', 'schema'], what)
    for (const name of headerNames) {
      const value = headers.get(name.toLowerCase()) ?? undefined
      const header = declared.headers[name]
      if (value === undefined && header?.required) fail(`${what} without ${name}`)
      if (value === undefined) continue
      if (!header) fail(`${what} with ${name}, which is not declared`)
      const typed = /^\d+$/.test(value) ? Number(value) : value
      expectValid(typed, [...response, 'headers', name, 'schema'], `${what}, ${name}`)
    }
    return operation.operationId
  }
}

function isBadHost(body: unknown): boolean {
  return (body as { details?: { path: string[] }[] }).details?.[0]?.path[0] === 'Host'
}

function toSegment(name: string): string {
  return `/${encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))}`
}

function fail(message: string): never {
  throw new Error(`Not as the OpenAPI document says: ${message}`)
}
