import fc, { type Arbitrary } from 'fast-check'
import { valueOf, type Overlay } from './arbitraries.ts'
import { typesOf, type Schema } from './operations.ts'
import { raw } from './spelling.ts'
import { NO_EMOJI, NO_MOMENT, NO_URL, textAgainst, textOfLength } from './texts.ts'

/** A value that breaks exactly one rule, with the expected answer. */
export interface Violation {
  rule: string
  /** The path from the value to the field that breaks the rule. */
  path: string[]
  code: string
  value: unknown
}

type Violations = Arbitrary<Violation>[]

/** Every way to break one rule of `schema`: one arbitrary each. */
export function violationsOf(schema: Schema, overlay: Overlay = {}): Violations {
  return [...wrongTypes(schema), ...brokenRules(schema, overlay)]
}

const OTHERS: Record<string, unknown[]> = {
  string: [0, true, [], {}, ['a'], { length: 4 }],
  boolean: [0, 1, 'true', 'false', '', [], {}],
  number: ['1', '', true, [], {}, [1]],
  integer: ['1', '', true, [], {}],
  array: ['a', 7, true, {}, { length: 4_000_000_000 }, { 0: 'a', length: 1 }],
  object: ['a', 7, false, [], ['a'], '{}', [[]], raw('-0')],
}

function wrongTypes(schema: Schema): Violations {
  const types = typesOf(schema)
  const others = [null, ...(OTHERS[types[0] ?? ''] ?? [])]
  const values = others.filter(value => !types.includes(value === null ? 'null' : typeof value))
  // Of a list of values, the message names them.
  const code = schema.enum ? 'invalid_value' : 'invalid_type'
  return [fc.constantFrom(...values).map(value => violation('type', code, value))]
}

function brokenRules(schema: Schema, overlay: Overlay): Violations {
  return typesOf(schema).flatMap(type => {
    switch (type) {
      case 'string':
        return [...brokenText(schema), ...(schema.enum ? [] : unstorable())]
      case 'integer':
      case 'number':
        return brokenNumber(schema)
      case 'array':
        return brokenArray(schema, overlay)
      case 'object':
        return schema.properties ? brokenObject(schema, overlay) : brokenFreeObject()
      default:
        return []
    }
  })
}

/** Text that breaks a rule by its characters or length alone; also for queries and paths. */
export function brokenText(schema: Schema): Violations {
  const { format, minLength = 0, maxLength } = schema
  if (schema.enum) return [fc.constant(violation('enum', 'invalid_value', 'unknown'))]
  const all: Violations = []
  if (format === 'emoji') all.push(fc.constantFrom(...NO_EMOJI).map(toFormat))
  if (format === 'date-time') all.push(fc.constantFrom(...NO_MOMENT).map(toFormat))
  if (format === 'uuid') all.push(fc.constant(toFormat('not-a-uuid')))
  if (format === 'uri') all.push(fc.constantFrom(...NO_URL).map(toFormat))
  if (minLength > 0) {
    all.push(fc.constant(violation('minLength', 'too_short', 'x'.repeat(minLength - 1))))
  }
  if (maxLength !== undefined) {
    all.push(
      fc
        .oneof(fc.constant(1), fc.integer({ min: 2, max: 3_000 }))
        .chain(more => textOfLength(schema, maxLength + more))
        .map(text => violation('maxLength', 'too_long', text)),
    )
  }
  const against = textAgainst(schema)
  if (against) {
    all.push(
      against.map(text =>
        violation('pattern', text.trim() === '' ? 'too_short' : 'invalid_format', text),
      ),
    )
  }
  return all
}

function toFormat(text: string): Violation {
  return violation('format', 'invalid_format', text)
}

/** Text that Postgres cannot store. */
function unstorable(): Violations {
  return [
    fc
      .constantFrom('\u0000', 'a\u0000b', '\ud800', 'a\udfff', '\udc00\ud800', '💰\ud83d')
      .map(text => violation('unstorable', 'invalid_encoding', text)),
  ]
}

export function brokenNumber({ minimum, maximum }: Schema): Violations {
  const all: Violations = [fc.constant(violation('finite', 'out_of_range', raw('1e400')))]
  if (minimum !== undefined)
    all.push(fc.constant(violation('minimum', 'out_of_range', minimum - 1)))
  if (maximum !== undefined) {
    const over = maximum === Number.MAX_SAFE_INTEGER ? raw('9007199254740992') : maximum + 1
    all.push(fc.constant(violation('maximum', 'out_of_range', over)))
  }
  return all
}

function brokenArray({ items = {}, maxItems }: Schema, overlay: Overlay): Violations {
  const valid = valueOf(items, overlay)
  const all: Violations = violationsOf(items, overlay).map(broken =>
    fc
      .tuple(fc.array(valid, { maxLength: 3 }), broken, fc.array(valid, { maxLength: 3 }))
      .map(([before, { value, path, ...rest }, after]) => ({
        ...rest,
        path: [String(before.length), ...path],
        value: [...before, value, ...after],
      })),
  )
  if (maxItems !== undefined) {
    all.push(
      fc
        .constantFrom(1, 2, 1_000)
        .map(more => Array.from({ length: maxItems + more }, (_, n) => `item ${n}`))
        .map(value => violation('maxItems', 'too_many', value)),
    )
  }
  return all
}

function brokenObject(schema: Schema, overlay: Overlay): Violations {
  const valid = valueOf(schema, overlay) as Arbitrary<Record<string, unknown>>
  const { properties = {}, required = [] } = schema
  const missing = required.map(name =>
    fc.tuple(valid, fc.boolean()).map(([{ [name]: value, ...rest }, isInherited]) => ({
      ...violation('required', 'required', isInherited ? inherit(rest, { [name]: value }) : rest),
      path: [name],
    })),
  )
  const broken = Object.entries(properties).flatMap(([name, field]) =>
    violationsOf(field, overlay).map(one =>
      fc.tuple(valid, one).map(([object, { path, value, ...rest }]) => ({
        ...rest,
        path: [name, ...path],
        value: Object.fromEntries([...Object.entries(object), [name, value]]),
      })),
    ),
  )
  return [...missing, ...broken]
}

/** A prototype that the caller claims has no effect. */
function inherit(object: object, prototype: object): object {
  return Object.fromEntries([...Object.entries(object), ['__proto__', prototype]])
}

/** Values that no stored JSON object may contain. */
function brokenFreeObject(): Violations {
  const inside: Violations = [
    inKey(
      fc
        .constantFrom('1e10001', '1E-10001', '0e99999', '1e131071', `1e${'9'.repeat(400)}`)
        .chain(text => fc.constantFrom(text, `-${text}`))
        .map(text => violation('number', 'out_of_range', raw(text))),
    ),
    ...unstorable().flatMap(bad => [
      inKey(bad),
      bad.map(({ rule, code, value }) => ({
        ...violation(rule, code, { [String(value)]: 1 }),
        path: [toShown(String(value))],
      })),
    ]),
  ]
  return [...inside, ...inside.map(one => one.map(below))]
}

/** Moves a violation some levels down, into objects and arrays. */
function below({ path, value, ...rest }: Violation): Violation {
  return { ...rest, path: ['a', '1', 'b', ...path], value: { a: [0, { b: value }] } }
}

function inKey(broken: Arbitrary<Violation>): Arbitrary<Violation> {
  return fc
    .tuple(fc.constantFrom('k', '__proto__', 'constructor', ''), broken)
    .map(([key, { value, ...rest }]) => ({ ...rest, path: [key], value: { [key]: value } }))
}

/** Returns a key as answers write it, even if it is no valid text. */
function toShown(key: string): string {
  return key.toWellFormed().replaceAll('\u0000', '\ufffd')
}

function violation(rule: string, code: string, value: unknown): Violation {
  return { rule, path: [], code, value }
}
