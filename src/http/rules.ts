import { Kind, Type, TypeRegistry, type TSchema } from '@sinclair/typebox'
import { findClosest } from '../base/closest.ts'
import { isInvisible } from '../base/display-text.ts'
import { isRawNumber } from './exact-json.ts'

/** All values of `details[].code`. */
export const ISSUE_CODES = [
  'required',
  'invalid_type',
  'too_short',
  'too_long',
  'too_many',
  'too_deep',
  'invalid_format',
  'invalid_value',
  'out_of_range',
  'invalid_json',
  'invalid_encoding',
] as const

export interface Issue {
  /** The path from the checked value to the invalid one. */
  path: string[]
  code: (typeof ISSUE_CODES)[number]
  message: string
}

export const NO_ISSUES: readonly Issue[] = []

/** The property of a body's schema with a function that recognizes a usual mistake. */
export const FIND_MISTAKE = Symbol('findMistake')

/** Returns the issues of a body that is not meant for its route, beside those of its schema. */
export type FindMistake = (body: object) => readonly Issue[]

/** Returns the issues with `value`. `schema` carries the bounds of the rule. */
export type Rule = (value: unknown, schema: TSchema) => readonly Issue[]

const rules = new Map<string, Rule>()

/**
 * Registers the TypeBox kind `kind`. Its values are valid if `rule` returns no issues. Returns
 * `kind`.
 */
export function defineRule(kind: string, rule: Rule): string {
  rules.set(kind, rule)
  TypeRegistry.Set<TSchema>(kind, (schema, value) => rule(value, schema).length === 0)
  return kind
}

/**
 * Returns the issues that the rule of `schema` finds in `value`, or undefined if the schema has no
 * rule.
 */
export function findIssues(schema: TSchema, value: unknown): readonly Issue[] | undefined {
  return rules.get(schema[Kind])?.(value, schema)
}

/** Returns one issue with the checked value itself. */
export function issue(code: Issue['code'], message: string): Issue[] {
  return [{ path: [], code, message }]
}

/** Returns the issue of a name that is none of the known ones. */
export function unknownName(name: string, known: readonly string[]): Omit<Issue, 'path'> {
  const closest = findClosest(name, known)
  const hint = closest === undefined ? '' : `; did you mean ${closest}?`
  return { code: 'invalid_value', message: `Is not known here${hint}` }
}

export function invalidType(expected: string, value: unknown): Issue[] {
  return issue('invalid_type', `Expected ${expected}, received ${typeName(value)}`)
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (isRawNumber(value)) return 'number'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Returns the length of `text` in code points. */
export function countCodePoints(text: string): number {
  let count = text.length
  for (let index = 0; index < text.length - 1; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 0xd800 && unit <= 0xdbff) {
      count--
      index++
    }
  }
  return count
}

/** Returns an issue if the length of `text` in code points is outside the schema's bounds. */
export function checkLength(text: string, schema: TSchema): readonly Issue[] {
  const min = schema['minLength'] ?? 0
  const max = schema['maxLength'] ?? Infinity
  if (text.length >= min && text.length <= max && min <= 1) return NO_ISSUES
  const length = countCodePoints(text)
  if (length < min)
    return issue(
      'too_short',
      min > 1 ? `Must have at least ${min} characters` : 'Must not be empty',
    )
  if (length > max) return issue('too_long', `Must have at most ${max} characters`)
  return NO_ISSUES
}

const TEXT = defineRule('Text', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const length = checkLength(value, schema)
  return length.length > 0 ? length : checkCharacters(value)
})

const TRIMMED = defineRule('TrimmedText', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const length = checkLength(value.trim(), schema)
  return length.length > 0 ? length : [...checkCharacters(value), ...checkVisible(value)]
})

/** Returns an issue if a reader sees nothing of `text`. */
export function checkVisible(text: string): readonly Issue[] {
  return isInvisible(text) ? issue('too_short', 'Must have a visible character') : NO_ISSUES
}

/** Returns an issue if Postgres cannot store `text`. */
export function checkCharacters(text: string): readonly Issue[] {
  const bad = findTextProblem(text)
  return bad ? issue('invalid_encoding', bad) : NO_ISSUES
}

interface TextOptions {
  minLength?: number
  maxLength: number
  description?: string
  examples?: string[]
  default?: string
}

/** The schema of text that is stored exactly as sent. Its length counts in code points. */
export function Text(options: TextOptions) {
  return Type.Unsafe<string>({ ...options, [Kind]: TEXT, type: 'string' })
}

const ONE_OF = defineRule('OneOf', (value, schema) => {
  const values: readonly unknown[] = schema['enum']
  return values.includes(value)
    ? NO_ISSUES
    : issue('invalid_value', `Must be one of ${values.join(', ')}`)
})

/** The schema of a string that is one of `values`. */
export function OneOf<const Value extends string>(values: readonly Value[], description?: string) {
  return Type.Unsafe<Value>({
    [Kind]: ONE_OF,
    type: 'string',
    enum: [...values],
    ...(description !== undefined && { description }),
  })
}

/**
 * The documented pattern of text that is not blank. JavaScript, Python and RE2 read it alike. Blank
 * text of other white space matches too, so that every accepted text matches.
 */
export const NOT_BLANK = '[^ \\t\\n\\v\\f\\r]'
/** Describes how `TrimmedText` treats white space. */
const TRIMMING =
  'White space around it is removed, and does not count. It must have a visible character.'

/**
 * The schema of text that is not blank. The trimmed text is what counts for its length, in code
 * points.
 */
export function TrimmedText({ description, ...options }: TextOptions) {
  return Type.Unsafe<string>({
    ...options,
    [Kind]: TRIMMED,
    type: 'string',
    minLength: 1,
    pattern: NOT_BLANK,
    description: description === undefined ? TRIMMING : `${description} ${TRIMMING}`,
  })
}

/**
 * Returns why Postgres cannot store `text`: U+0000, or half of a surrogate pair. Returns undefined
 * if it can.
 */
export function findTextProblem(text: string): string | undefined {
  if (text.includes('\u0000')) return 'Must not contain U+0000'
  if (!text.isWellFormed()) return 'Must not contain half of a surrogate pair'
  return undefined
}
