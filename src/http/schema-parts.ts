import { Type, type TSchema } from '@sinclair/typebox'

// What the schemas of answers are made of.

/** For an object that has what its schema says, and nothing else. */
export const closed = { additionalProperties: false } as const

/** A moment, in ISO 8601. */
export const Timestamp = Type.String({ format: 'date-time' })

/** A value that may be null instead. */
export function Nullable<Schema extends TSchema>(schema: Schema, description?: string) {
  return Type.Union([schema, Type.Null()], description === undefined ? {} : { description })
}
