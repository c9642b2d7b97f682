import { Type, type TSchema } from '@sinclair/typebox'

/** Options of an object schema that allows no additional properties. */
export const closed = { additionalProperties: false } as const

/** A point in time, in ISO 8601. */
export const Timestamp = Type.String({ format: 'date-time' })

/** The schema of a value or null. */
export function Nullable<Schema extends TSchema>(schema: Schema, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}
