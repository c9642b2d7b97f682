import { Kind, type TSchema } from '@sinclair/typebox'

// Every named schema that an operation refers to, by name. It only grows, because schemas are
// constants.
const NAMED = new Map<string, TSchema>()
const PREFIX = '#/components/schemas/'

/**
 * Converts a TypeBox schema to JSON Schema. Schemas with an `$id` become references to components.
 */
export function toJsonSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(toJsonSchema)
  if (typeof schema !== 'object' || schema === null) return schema
  const id = (schema as TSchema).$id
  if (id !== undefined) {
    NAMED.set(id, schema as TSchema)
    return { $ref: PREFIX + id }
  }
  return expand(schema)
}

/**
 * Returns the named schemas that `operations` refer to, directly or through each other, by name.
 */
export function toComponents(operations: unknown): Record<string, unknown> {
  const components = new Map<string, unknown>()
  const visit = (value: unknown): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(
      /"\$ref":"#\/components\/schemas\/(\w+)"/g,
    )) {
      const schema = NAMED.get(name)
      if (components.has(name) || !schema) continue
      const { $id: _, ...rest } = schema
      components.set(name, expand(rest))
      visit(components.get(name))
    }
  }
  visit(operations)
  return Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Writes `x | null` as a type array if x is a plain type, and as `anyOf` otherwise. */
function expand(schema: object): unknown {
  if ((schema as TSchema)[Kind] === 'Union') {
    const { anyOf, ...rest } = schema as TSchema
    const [first, second, ...more] = anyOf as TSchema[]
    if (
      more.length === 0 &&
      second?.type === 'null' &&
      typeof first?.type === 'string' &&
      !first.$id
    ) {
      const { enum: values } = first
      const allowed = Array.isArray(values) ? { enum: [...values, null] } : {}
      return { ...(expand(first) as object), ...rest, type: [first.type, 'null'], ...allowed }
    }
  }
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, toJsonSchema(value)]),
  )
}
