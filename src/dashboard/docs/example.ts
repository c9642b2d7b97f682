import {
  listOperations,
  resolve,
  toBaseUrl,
  type Document,
  type Operation,
  type Schema,
} from './document.ts'

/** A document with a value for each field name, from its examples. */
export interface Reference {
  document: Document
  examples: ReadonlyMap<string, unknown>
}

const BY_FORMAT: Record<string, unknown> = {
  uuid: '5f0c1c4e-8f2b-4b7a-9d35-2f6f4a1f7c10',
  'date-time': '2026-11-20T09:30:00.000Z',
  emoji: '🔔',
}
const LONG_BODY = 40

/** Collects examples by field name. Those of operations take precedence over those of schemas. */
export function collectExamples(document: Document): Reference {
  const examples = new Map<string, unknown>()
  const add = (name: string, value: unknown) => {
    if (!examples.has(name)) examples.set(name, value)
  }
  for (const operation of listOperations(document)) {
    const example = findBodyExample(operation)
    if (typeof example === 'object' && example !== null) {
      for (const [name, value] of Object.entries(example)) add(name, value)
    }
  }
  for (const { properties = {} } of Object.values(document.components?.schemas ?? {})) {
    for (const [name, schema] of Object.entries(properties)) {
      const value = schema.examples?.[0] ?? schema.default
      // An id is an example for its own schema alone.
      if (name !== 'id' && value !== undefined) add(name, value)
    }
  }
  return { document, examples }
}

/** Returns the example of the request body. */
function findBodyExample(operation: Operation): unknown {
  return Object.values(operation.requestBody?.content ?? {})[0]?.example
}

/** Returns an example of the schema with its required fields. */
export function toExample(reference: Reference, schema: Schema): unknown {
  const known = resolve(reference.document, schema)
  const { anyOf, items, properties, type, format } = known
  if (known.const !== undefined) return known.const
  if (known.examples !== undefined) return known.examples[0]
  if (known.enum !== undefined) return known.enum[0]
  if (anyOf !== undefined) {
    return anyOf.some(isNull) ? null : toExample(reference, anyOf[0] ?? {})
  }
  if (properties !== undefined) {
    const { required = [] } = known
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([name]) => required.includes(name))
        .map(([name, field]) => [name, toFieldExample(reference, name, field)]),
    )
  }
  if (items !== undefined) {
    const item = toExample(reference, items)
    return item === '…' ? [] : [item]
  }
  if (known.default !== undefined) return known.default
  if (format !== undefined && format in BY_FORMAT) return BY_FORMAT[format]
  if (Array.isArray(type)) return type.includes('null') ? null : '…'
  if (type === 'integer' || type === 'number') return known.minimum ?? 1
  return type === 'boolean' ? true : type === 'object' ? {} : '…'
}

/** Returns a `curl` command with the key from the environment. */
export function toCurl(reference: Reference, operation: Operation): string {
  const { method, requestBody } = operation
  const example = findBodyExample(operation)
  const isForm = 'application/x-www-form-urlencoded' in (requestBody?.content ?? {})
  const [type] = Object.keys(requestBody?.content ?? {})
  const implied = example === undefined ? 'GET' : 'POST'
  return [
    `curl ${quote(toBaseUrl(reference.document) + toPath(reference, operation))}`,
    method !== implied && `-X ${method}`,
    '-H "Authorization: Bearer $TIDINGS_API_KEY"',
    // curl sends a form by default.
    type !== undefined && !isForm && `-H 'Content-Type: ${type}'`,
    example !== undefined && `-d ${quote(toBody(example))}`,
  ]
    .filter(part => part !== false)
    .join(' \\\n  ')
}

function toPath({ document, examples }: Reference, operation: Operation): string {
  return operation.path.replace(/\{(\w+)\}/g, (slot, name: string) => {
    const schema = operation.parameters?.find(parameter => parameter.name === name)?.schema
    const data = resolve(document, findData(document, operation)).properties?.[name]
    const value = schema?.examples?.[0] ?? data?.examples?.[0] ?? examples.get(name)
    return value === undefined ? slot : encodeURIComponent(String(value))
  })
}

/** Returns the schema of `data` in a successful response. */
function findData(document: Document, { responses }: Operation): Schema {
  const reply = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const schema = Object.values(reply?.content ?? {})[0]?.schema
  return (schema && resolve(document, schema).properties?.['data']) ?? {}
}

function toFieldExample(reference: Reference, name: string, field: Schema): unknown {
  const { examples: own, const: constant, items } = resolve(reference.document, field)
  if (own !== undefined || constant !== undefined || field.$ref !== undefined) {
    return toExample(reference, field)
  }
  const known = reference.examples.get(name)
  // A field of the same name may be of another type elsewhere.
  const isAlike = known !== undefined && Array.isArray(known) === (items !== undefined)
  return isAlike && isFlat(field) === (typeof known !== 'object' || Array.isArray(known))
    ? known
    : toExample(reference, field)
}

function isFlat({ properties, type }: Schema): boolean {
  return properties === undefined && type !== 'object'
}

function isNull({ type }: Schema): boolean {
  return type === 'null'
}

function toBody(example: unknown): string {
  if (typeof example === 'string') return example
  const line = JSON.stringify(example)
  return line.length <= LONG_BODY ? line : JSON.stringify(example, null, 2).replaceAll('\n', '\n  ')
}

/** Quotes a word for a POSIX shell. */
function quote(text: string): string {
  return /^[\w:/.%~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
