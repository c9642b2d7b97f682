import { Kind, type TSchema } from '@sinclair/typebox'

// Every schema with a name that was referred to: schemas are constants, so are their names.
const NAMED = new Map<string, TSchema>()

/** Plain JSON Schema, in which a schema with an `$id` becomes a reference to the component of that name. */
export function refer(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(refer)
  if (typeof schema !== 'object' || schema === null) return schema
  const id = (schema as TSchema).$id
  if (id !== undefined) {
    NAMED.set(id, schema as TSchema)
    return { $ref: `#/components/schemas/${id}` }
  }
  return expand(schema)
}

/** The named schemas in full, those that they refer to included. */
export function toComponents(): Record<string, unknown> {
  const components: Record<string, unknown> = {}
  // Expanding one may name further ones, which a Map's iteration then reaches, too.
  for (const [id, schema] of NAMED) {
    const { $id: _, ...rest } = schema
    components[id] = expand(rest)
  }
  return Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** «x or null» is a type array where x is a plain type, and `anyOf` elsewhere. */
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
      return { ...(expand(first) as object), ...rest, type: [first.type, 'null'] }
    }
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, refer(value)]))
}
