import { Kind, Type } from '@sinclair/typebox'
import { checkCharacters, checkLength, defineRule, invalidType, issue } from '../http/rules.ts'

const MAX_LENGTH = 100
const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\s]*$/u
// What moves a terminal's cursor, breaks a line of a list, or turns the text around it.
const DISRUPTIVE = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u

const NAME = defineRule('Name', (value, schema) => {
  if (typeof value !== 'string') return invalidType('string', value)
  const length = checkLength(value.trim(), schema)
  if (length.length > 0) return length
  const characters = checkCharacters(value)
  if (characters.length > 0) return characters
  if (INVISIBLE.test(value)) return issue('invalid_value', 'Must have something that can be seen')
  return DISRUPTIVE.test(value.trim())
    ? issue('invalid_value', 'Must not contain control characters or ones that turn text around')
    : []
})

/** What people call themselves, an organization, a project or a key. It is kept trimmed: see `toName`. */
export const Name = Type.Unsafe<string>({
  [Kind]: NAME,
  type: 'string',
  minLength: 1,
  maxLength: MAX_LENGTH,
  pattern: '\\S',
})

export function toName(name: string): string {
  return name.trim()
}
