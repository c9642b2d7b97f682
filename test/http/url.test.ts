import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { countCodePoints, Text } from '../../src/http/rules.ts'
import { readParams, readQuery, toPathname, type DecodedValues } from '../../src/http/url.ts'
import { createValidator, InvalidRequest, type ObjectSchema } from '../../src/http/validation.ts'

test.each([
  ['http://a/v1/me', '/v1/me'],
  ['http://a/v1/me?b=/c', '/v1/me'],
  ['http://a/?b', '/'],
  ['http://localhost:3000/a%2Fb?c#d', '/a%2Fb'],
  ['https://1.2.3.4.5/x', '/x'],
  ['http://a:99999/x', '/x'],
])('the path of %p is %p', (url, pathname) => {
  expect(toPathname(url)).toBe(pathname)
})

test.each([
  ['', 0],
  ['abc', 3],
  ['🚀', 1],
  ['a🚀b', 3],
  ['👨‍👩‍👧', 5],
  ['e\u0301', 2],
  ['\ud800', 1],
  ['\udc00\ud800', 2],
  ['\ud800\ud800\udc00', 2],
])('contract §2 %p has %i code points', (text, count) => {
  expect(countCodePoints(text)).toBe([...text].length)
  expect(countCodePoints(text)).toBe(count)
})

/** Returns the texts that `schema` accepts, or the issues of a request, each as `path code`. */
function attempt({ values, issues }: DecodedValues, schema: ObjectSchema): unknown {
  try {
    return createValidator<unknown>(schema).parse(values, issues)
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    return error.details.map(({ path, code }) => `${path.join('.')} ${code}`)
  }
}

describe('contract §9 the query of a URL:', () => {
  const schema = Type.Object({
    name: Type.Optional(Text({ minLength: 1, maxLength: 5 })),
    count: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
  })

  test.each([
    ['', {}],
    ['?', {}],
    ['?name=a&count=1', { name: 'a', count: 1 }],
    ['?count=007', { count: 7 }],
    ['?count=7&x=y&x=z', ['x invalid_value']],
    ['?n%61me=%C3%BC+%2B', { name: 'ü +' }],
    ['?name=a=b', { name: 'a=b' }],
    ['?&&name=a&', { name: 'a' }],
    ['?%ff=1&name=a', ['%ff invalid_value']],
    ['?__proto__=1&constructor=2', ['__proto__ invalid_value', 'constructor invalid_value']],
    ['?name', ['name too_short']],
    ['?name=', ['name too_short']],
    ['?name=abcdef', ['name too_long']],
    ['?name=%00', ['name invalid_encoding']],
    ['?name=%ff', ['name invalid_encoding']],
    ['?name=%', ['name invalid_encoding']],
    ['?name=a&name=a', ['name invalid_value']],
    ['?count=-1', ['count out_of_range']],
    ['?count=10', ['count out_of_range']],
    ['?count=99999999999999999999', ['count out_of_range']],
    ['?count=1.0', ['count invalid_type']],
    ['?count=0x1', ['count invalid_type']],
    ['?count=%201', ['count invalid_type']],
    ['?name=%ff&count=x', ['name invalid_encoding', 'count invalid_type']],
  ])('%p', (query, expected) => {
    expect(attempt(readQuery(schema.properties, `http://a/b${query}`), schema)).toEqual(expected)
  })

  test('of many unknown names, only those that an error lists are compared', () => {
    const names = Array.from({ length: 5_000 }, (_, n) => `n${n}=`)
    expect(readQuery(schema.properties, `http://a/b?${names.join('&')}`).issues).toHaveLength(20)
  })
})

describe('the parameters of a path:', () => {
  const schema = Type.Object({
    one: Text({ minLength: 1, maxLength: 5 }),
    two: Text({ minLength: 1, maxLength: 5 }),
  })

  test.each([
    ['/a/x/b/y', { one: 'x', two: 'y' }],
    ['/a/%2F/b/%C3%BC', { one: '/', two: 'ü' }],
    ['/a/a+b/b/%25', { one: 'a+b', two: '%' }],
    ['/a/%00/b/abcdef', ['one invalid_encoding', 'two too_long']],
    ['/a/%ff/b/%', ['one invalid_encoding', 'two invalid_encoding']],
  ])('%p', (path, expected) => {
    expect(attempt(readParams('/a/:one/b/:two', path), schema)).toEqual(expected)
  })
})
