import type { TSchema } from '@sinclair/typebox'
import { TypeCompiler, type ValueError } from '@sinclair/typebox/compiler'
import { ValueErrorType } from '@sinclair/typebox/errors'
import { takeStart } from '../base/display-text.ts'
import type { Detail } from './envelope.ts'
import { findIssues, invalidType, issue, NO_ISSUES, unknownName, type Issue } from './rules.ts'

const MAX_DETAILS = 20
/**
 * The longest segment of a path in a response, in UTF-16 units: the length of the longest stored
 * key.
 */
const MAX_SEGMENT = 512

/** A 400 response that lists every failing field of body, path, query and headers, up to 20. */
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

/** Returns the error for one invalid field. */
export function invalidField(field: string, code: Issue['code'], message: string): InvalidRequest {
  return new InvalidRequest([{ path: [field], code, message }])
}

/** A schema of `Value`, which is TypeBox's type property `static`. */
export type SchemaOf<Value> = TSchema & { static: Value }
/** The schema of an object, as returned by `Type.Object`. */
export type ObjectSchema = TSchema & { properties: Record<string, TSchema> }

export interface Validator<Value> {
  /**
   * Returns the typed value. Throws `InvalidRequest` with all issues, including those in `found`.
   */
  parse(value: unknown, found?: readonly Issue[]): Value
}

/** Compiles `schema` for values that Elysia does not validate. */
export function createValidator<Value>(schema: SchemaOf<Value>): Validator<Value> {
  const compiled = TypeCompiler.Compile(schema)
  return {
    parse(value, found = NO_ISSUES) {
      if (!compiled.Check(value)) throw toInvalidRequest(compiled, value, found)
      if (found.length > 0) throw new InvalidRequest(found)
      return value as Value // The check above guarantees the type.
    },
  }
}

/** Returns the error for an invalid `value`. The issues in `found` come first. */
export function toInvalidRequest(
  compiled: { Errors(value: unknown): Iterable<ValueError> },
  value: unknown,
  found: readonly Issue[],
): InvalidRequest {
  return new InvalidRequest(join(found, toIssues(compiled.Errors(value))))
}

/** Appends to `found` the issues of `more` that have other paths. */
function join(found: readonly Issue[], more: readonly Issue[]): readonly Issue[] {
  if (found.length === 0) return more
  const paths = new Set(found.map(({ path }) => JSON.stringify(path)))
  return [...found, ...more.filter(({ path }) => !paths.has(JSON.stringify(path)))]
}

/** Returns the issues of the first error of each path, in the order of the schema. */
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

function toOwnIssues({ type, schema, value, errors, path }: ValueError): readonly Issue[] {
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return issue('required', 'Required')
    case ValueErrorType.ObjectAdditionalProperties:
      return [
        {
          path: [],
          ...unknownName(toPath(path).at(-1) ?? '', Object.keys(schema['properties'] ?? {})),
        },
      ]
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
      // All unions of ours are `x | null`: the errors of x explain more than those of the union.
      const depth = toPath(path).length
      return toIssues(errors[0] ?? []).map(found => ({ ...found, path: found.path.slice(depth) }))
    }
    default:
      return findIssues(schema, value) ?? invalidType(schema['type'] ?? 'another type', value)
  }
}

/** Returns the segments of a JSON pointer. */
function toPath(pointer: string): string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map(segment => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Shortens and cleans a segment. An invalid key can have any length and contain invalid text. */
function toSegment(text: string): string {
  return takeStart(text, MAX_SEGMENT).toWellFormed().replaceAll('\u0000', '\ufffd')
}
