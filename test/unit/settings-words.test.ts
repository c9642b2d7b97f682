import { expect, test } from 'bun:test'
import { listActionsOn, toActionText, toDetailsText } from '../../src/audit/actions.ts'
import { parseRetentionDays } from '../../src/dashboard/app/organization/retention-days.ts'
import { toSize } from '../../src/dashboard/app/server/sizes.ts'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1_000, '1 kB'],
  [1_234_567, '1.23 MB'],
  [12_300_000_000, '12.3 GB'],
  [4e15, '4 PB'],
  [4e19, '40,000 PB'],
])('dashboard 11 %d bytes are said as %s', (bytes, words) => {
  expect(toSize(bytes, 'en')).toBe(words)
})

test.each([
  ['', null],
  ['  ', null],
  [' 90 ', 90],
  ['0', 0],
  ['1.5', 1.5],
  ['soon', 'soon'],
  ['Infinity', 'Infinity'],
  ['NaN', 'NaN'],
])('contract §11 %p typed for the days of keeping is %p for the server', (typed, days) => {
  expect(parseRetentionDays(typed)).toBe(days)
})

test('dashboard 11 details of the audit log are said in words, without names and what is not so', () => {
  expect(toDetailsText({ name: 'ci', limit: 100 })).toBe('limit 100')
  expect(toDetailsText({ from: 'member', to: 'admin' })).toBe('from member, to admin')
  expect(toDetailsText({ role: 'viewer', isBound: true })).toBe('role viewer, bound')
  expect(toDetailsText({ role: 'viewer', isBound: false, keepDays: null })).toBe('role viewer')
  expect(toDetailsText({ overlapHours: 24 })).toBe('overlap hours 24')
  expect(toDetailsText({})).toBe('')
})

test('dashboard 11 an action has words, or is said as it is', () => {
  expect(toActionText('key.revoked')).toBe('revoked the API key')
  expect(toActionText('server.did')).toBe('server.did')
  expect(listActionsOn('session')).toEqual([
    'session.created',
    'session.ended',
    'session.refused',
    'session.verified',
  ])
  expect(listActionsOn('key')).not.toContain('keys.created')
  expect(listActionsOn('')).toEqual([])
})
