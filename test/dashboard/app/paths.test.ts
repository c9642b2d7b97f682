import { describe, expect, test } from 'bun:test'
import {
  APP_PATH,
  PATHS,
  toFeedPath,
  toSafeNext,
  toEventPath,
  toSignInPath,
  toProjectPath,
  toUserPath,
} from '../../../src/dashboard/app/paths.ts'

describe('the paths of the application', () => {
  test.each([
    '/',
    '/?a=b',
    '/setup',
    '/setup#secret',
    '/sign-in?next=%2F',
    toFeedPath('prj_1'),
    toFeedPath('prj_1', 'chn_1'),
    toProjectPath('start', 'prj_1'),
    toEventPath('prj_1', 'evt_1'),
    '/e/evt_1?q=a',
    toProjectPath('users', 'prj_1'),
    toUserPath('prj_1', 'a/b c%?#') ?? '',
    toUserPath('prj_1', '...') ?? '',
  ])('include %s', path => {
    expect(APP_PATH.test(path)).toBe(true)
  })

  test.each([
    '/docs',
    '/openapi.json',
    '/assets/main.js',
    '//evil.example',
    '//?x',
    '/\\evil.example',
    '/p/\\evil.example',
    '/p/',
    '/p/a/b',
    '/p/a/users/%zz',
    '/p/a/users/b/c',
    '/p/a/e/',
    '/p/%zz',
    '/setups',
    'https://evil.example/p/prj_1',
    'javascript:alert(1)',
    ' /setup',
    '',
    '/\n/evil.example',
  ])('do not include %j', path => {
    expect(APP_PATH.test(path)).toBe(false)
  })

  test('after sign-in the reader goes to the requested page of this server', () => {
    expect(toSafeNext(toFeedPath('prj_1', 'chn_1'))).toBe('/p/prj_1?channel=chn_1')
    expect(
      ['//evil.example', 'https://evil.example', '/sign-in', undefined].map(toSafeNext),
    ).toEqual(Array(4).fill(PATHS.home))
  })

  test('reliability §9 no path contains segments that browsers resolve', () => {
    expect(['.', '..', ''].map(userId => toUserPath('prj_1', userId))).toEqual(
      Array(3).fill(undefined),
    )
  })

  test('an invalid escape leads to the home page', () => {
    expect(toSafeNext('/p/prj_1/users/%ff')).toBe(PATHS.home)
    expect(toSafeNext('/p/prj_1/users/a%2Fb')).toBe('/p/prj_1/users/a%2Fb')
  })

  test('the sign-in link leads back to the page', () => {
    const path = toSignInPath('/p/prj_1?channel=a%26b')
    const next = new URL(path, 'http://localhost').searchParams.get('next')
    expect([toSafeNext(next ?? undefined), toSignInPath('/')]).toEqual([
      '/p/prj_1?channel=a%26b',
      '/sign-in',
    ])
  })
})
