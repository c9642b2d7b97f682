import type { TSchema } from '@sinclair/typebox'
import { TypeCompiler, type ValueError } from '@sinclair/typebox/compiler'
import { ValueErrorType } from '@sinclair/typebox/errors'
import type { Detail } from './envelope.ts'
import { findIssues, invalidType, issue, NO_ISSUES, type Issue } from './rules.ts'

const MAX_DETAILS = 20
/** UTF-16 units of a part of a path: as many as the longest key that is kept may have. */
const MAX_SEGMENT = 512

/** A request that breaks the rules of its body, path, query or headers: a 400 that lists every failing field. */
export class InvalidRequest extends Error {
  readonly details: Detail[]

  constructor(issues: readonly Issue[]) {
    super('Validation error')
    this.name = 'Invalid'
    this.details = issues.slice(0, MAX_DETAILS).map(({ path, code, message }) => ({
      path: path.map(toSegment),
      message,
      code,
    }))
  }
}

/** One field that breaks its rule. */
export function invalidField(field: string, code: Issue['code'], message: string): InvalidRequest {
  return new InvalidRequest([{ path: [field], code, message }])
}

/** A schema of `Value`: TypeBox carries the type along in `static`. */
export type SchemaOf<Value> = TSchema & { static: Value }
/** The schema of an object, as `Type.Object` makes it. */
export type ObjectSchema = TSchema & { properties: Record<string, TSchema> }

export interface Validator<Value> {
  /** The value, typed; throws `Invalid` with every issue, those that the caller has found already included. */
  parse(value: unknown, found?: readonly Issue[]): Value
}

/** Compiles `schema`, for values that are no body of a route. */
export function createValidator<Value>(schema: SchemaOf<Value>): Validator<Value> {
  const compiled = TypeCompiler.Compile(schema)
  return {
    parse(value, found = NO_ISSUES) {
      if (!compiled.Check(value)) throw toInvalidRequest(compiled, value, found)
      if (found.length > 0) throw new InvalidRequest(found)
      return value as Value // The schema's check guarantees it.
    },
  }
}

/** The failure of `value` against a compiled schema. Issues that were `found` before come first. */
export function toInvalidRequest(
  compiled: { Errors(value: unknown): Iterable<ValueError> },
  value: unknown,
  found: readonly Issue[],
): InvalidRequest {
  return new InvalidRequest(join(found, toIssues(compiled.Errors(value))))
}

/** All issues, those of `more` only for paths that `found` does not have. */
function join(found: readonly Issue[], more: readonly Issue[]): readonly Issue[] {
  if (found.length === 0) return more
  const paths = new Set(found.map(({ path }) => JSON.stringify(path)))
  return [...found, ...more.filter(({ path }) => !paths.has(JSON.stringify(path)))]
}

/** One issue a path, in the order of the schema. */
function toIssues(errors: Iterable<ValueError>): Issue[] {
  const byPath = new Map<string, Issue[]>()
  for (const error of errors) {
    if (byPath.has(error.path)) continue
    const base = toPath(error.path)
    byPath.set(
      error.path,
      toOwnIssues(error).map(found => ({ ...found, path: [...base, ...found.path] })),
    )
    if (byPath.size >= MAX_DETAILS) break
  }
  return [...byPath.values()].flat()
}

function toOwnIssues({ type, schema, value, errors }: ValueError): readonly Issue[] {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return issue('required', 'Required')
    case ValueErrorType.ArrayMaxItems:
      return issue('too_many', `Must have at most ${schema['maxItems']} items`)
    case ValueErrorType.ArrayMinItems:
      return issue('too_short', `Must have at least ${schema['minItems']} items`)
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.IntegerMaximum:
      return issue('out_of_range', `Must be from ${schema['minimum']} to ${schema['maximum']}`)
    case ValueErrorType.NumberMinimum:
      return issue('out_of_range', `Must be at least ${schema['minimum']}`)
    case ValueErrorType.Number:
      if (typeof value === 'number') return issue('out_of_range', 'Must be a finite number')
      return invalidType('number', value)
    case ValueErrorType.Union: {
      // Our unions are «x or null»: what x has against the value is what the caller wants to know.
      const first = [...(errors[0] ?? [])][0]
      return first ? toOwnIssues(first) : issue('invalid_value', 'Invalid value')
    }
    default:
      return findIssues(schema, value) ?? invalidType(schema['type'] ?? 'another type', value)
  }
}

/** The segments of a JSON pointer. */
function toPath(pointer: string): string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map(segment => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** A refused key may be no valid text itself, or of any length, and stand in every path below it; the answer may not. */
function toSegment(text: string): string {
  return text.slice(0, MAX_SEGMENT).toWellFormed().replaceAll('\u0000', '\ufffd')
}
