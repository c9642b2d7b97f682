import { describe, expect, test } from 'bun:test'
import { Email, Name, toName } from '../../../src/access/guard/schema.ts'
import { parseEmail } from '../../../src/base/config/values.ts'
import { findIssues } from '../../../src/http/rules.ts'

const toCode = (schema: typeof Name, value: unknown) =>
  findIssues(schema, value)?.[0]?.code ?? 'fine'

describe('contract §12 a name', () => {
  test.each([
    ['Ada', 'fine'],
    ['  Ada  ', 'fine'],
    ['👩‍👩‍👧‍👦 shop', 'fine'],
    ['😀'.repeat(100), 'fine'],
    ['x'.repeat(101), 'too_long'],
    [' \t ', 'too_short'],
    ['a\tb', 'invalid_value'],
    ['a\u0007', 'invalid_value'],
    ['a\u2028b', 'invalid_value'],
    ['\u202eadA', 'invalid_value'],
    ['a\ud800', 'invalid_encoding'],
    [['a'], 'invalid_type'],
  ])('%j is %s', (value, code) => expect(toCode(Name, value)).toBe(code))

  test('is kept trimmed', () => expect(toName('  Ada & Co ')).toBe('Ada & Co'))
})

describe('reliability §6 an e-mail address', () => {
  test.each([
    ['ada@example.com', 'fine'],
    [' Ada+tag@Sub.Example.com ', 'fine'],
    ['ada@localhost', 'fine'],
    ['ada', 'invalid_format'],
    ['@example.com', 'invalid_format'],
    ['a@b@c', 'invalid_format'],
    ['a b@example.com', 'invalid_format'],
    ['ada@exa mple.com', 'invalid_format'],
    ['аda@example.com', 'invalid_format'],
    // The Kelvin sign, whose lower case is the letter k.
    ['\u212aim@example.com', 'invalid_format'],
    ['kim@\u212a.example', 'invalid_format'],
    ['ada@example..com', 'invalid_format'],
    [`${'a'.repeat(60)}@${'b'.repeat(200)}.com`, 'invalid_format'],
    [5, 'invalid_type'],
  ])('%j is %s', (value, code) => expect(toCode(Email, value)).toBe(code))

  test('is compared in lower case', () =>
    expect(parseEmail(' Ada@Example.COM ')).toBe('ada@example.com'))
})
