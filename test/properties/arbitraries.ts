import fc, { type Arbitrary } from 'fast-check'
import { textOf, textOfLength } from './texts.ts'
import { typesOf, type Schema } from './operations.ts'
import { raw, spell } from './spelling.ts'

/** Limits of an object that is stored as sent; the body leaves room for the other fields. */
const FREE = { bytes: 128 * 1024, depth: 63, keys: 5_000, keyLength: 10_000 }

/**
 * Values by field name that replace those of the schema, for rules that JSON Schema cannot express.
 */
export type Overlay = Readonly<Record<string, Arbitrary<unknown>>>

/** Values that satisfy every rule of `schema`. */
export function valueOf(schema: Schema, overlay: Overlay = {}): Arbitrary<unknown> {
  const types = typesOf(schema)
  const values = types
    .filter(type => type !== 'null')
    .map(type => plainValueOf(schema, type, overlay))
  const value = fc.oneof(...values)
  return types.includes('null') ? fc.option(value, { nil: null, freq: 6 }) : value
}

function plainValueOf(schema: Schema, type: string | undefined, overlay: Overlay) {
  if (schema.enum) return fc.constantFrom(...schema.enum)
  switch (type) {
    case 'string':
      return textOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return integerOf(schema)
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9, noNaN: true })
    case 'array':
      return fc.array(valueOf(schema.items ?? {}, overlay), {
        maxLength: schema.maxItems ?? 10,
        size: 'medium',
      })
    case 'object':
      return schema.properties ? objectOf(schema, overlay) : freeObject
    default:
      throw new Error(`No generator for the type ${type}`)
  }
}

function integerOf({ minimum = 0, maximum = 1_000 }: Schema): Arbitrary<number> {
  return fc.oneof(
    fc.integer({ min: minimum, max: Math.min(maximum, minimum + 200) }),
    fc.constantFrom(minimum, maximum),
  )
}

/** Objects with the required fields, some optional ones, and sometimes unknown ones. */
function objectOf({ properties = {}, required = [] }: Schema, overlay: Overlay) {
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      overlay[name] ?? valueOf(schema, overlay),
    ]),
  )
  const unknownName = fc
    .oneof(specialKey, textOf({ minLength: 1, maxLength: 20 }))
    .filter(name => !Object.hasOwn(properties, name))
  const unknown = fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.tuple(unknownName, shallowValue), { maxLength: 3 }) },
  )
  return fc
    .tuple(fc.record(fields, { requiredKeys: required }), unknown)
    .map(([known, others]): Record<string, unknown> => {
      return Object.fromEntries([...others, ...Object.entries(known)])
    })
}

const specialKey = fc.constantFrom(
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'toJSON',
  'length',
  'then',
  '$ref',
  '',
  'id',
  'seq',
  'projectId',
  'project',
)

const number = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(
    0,
    -0,
    0.1,
    1e-7,
    5e-324,
    1e20,
    1e21,
    123456789.12345679,
    1.7e308,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
  ),
  fc
    .constantFrom('1.10', '1.0', '0.00000010', '12345678901234567890', '1E5', '1e400', '1e10000')
    .chain(text => fc.constantFrom(text, `-${text}`))
    .map(raw),
  fc.tuple(fc.bigInt(), fc.nat()).map(([whole, part]) => raw(`${whole}.${part}e-10000`)),
)

const leaf = fc.oneof(fc.constant(null), fc.boolean(), number, textOf({ maxLength: 60 }))
const key = fc.oneof(
  { weight: 3, arbitrary: textOf({ maxLength: 12 }) },
  { weight: 1, arbitrary: specialKey },
)

const { value: nested } = fc.letrec(tie => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map(Object.fromEntries),
  ),
}))
const shallowValue = fc.oneof(leaf, nested)

/** Any JSON object, sometimes at one of its limits. */
const freeObject: Arbitrary<object> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .array(fc.tuple(key, nested), { maxLength: 6 })
      .map(pairs => Object.fromEntries(pairs)),
  },
  { weight: 1, arbitrary: fc.boolean().map(inArrays => nestObject(FREE.depth, inArrays)) },
  { weight: 1, arbitrary: leaf.map(manyKeys) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(textOfLength({}, FREE.keyLength), leaf)
      .map(([name, value]) => ({ [name]: value })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('x', 'é', '中', '😀').map(unit => ofSize(FREE.bytes, unit)),
  },
)

/** Returns objects, or an object around arrays, `depth` levels deep. */
function nestObject(depth: number, inArrays: boolean): object {
  let value: unknown = inArrays ? [] : {}
  for (let level = 2; level < depth; level++) value = inArrays ? [value] : { a: value }
  return { a: value }
}

/** Returns an object with the maximum number of keys, each with the beginning of `value`. */
function manyKeys(value: unknown): object {
  const small = typeof value === 'string' ? value.slice(0, 5).toWellFormed() : value
  const bytes = Buffer.byteLength(spell({ [`k${FREE.keys}`]: small }))
  const count = Math.min(FREE.keys, Math.floor(FREE.bytes / bytes))
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, small]))
}

/** Returns an object of exactly `bytes` bytes as JSON text, mostly `unit`. */
function ofSize(bytes: number, unit: string): object {
  const rest = bytes - '{"a":""}'.length
  const size = Buffer.byteLength(unit)
  return { a: unit.repeat(Math.floor(rest / size)) + 'x'.repeat(rest % size) }
}
