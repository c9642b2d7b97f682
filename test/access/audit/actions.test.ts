import { expect, test } from 'bun:test'
import { listActionsOn, toActionText, toDetailsText } from '../../../src/access/audit/actions.ts'
import { parseRetentionDays } from '../../../src/dashboard/app/organization/retention-days.ts'
import { toSize } from '../../../src/dashboard/app/server/sizes.ts'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1_000, '1 kB'],
  [1_234_567, '1.23 MB'],
  [12_300_000_000, '12.3 GB'],
  [4e15, '4 PB'],
  [4e19, '40,000 PB'],
])('dashboard §11 %d bytes are shown as %s', (bytes, words) => {
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
])('contract §11 a typed retention of %p days is sent as %p', (typed, days) => {
  expect(parseRetentionDays(typed)).toBe(days)
})

test('dashboard §11 details of the audit log are described without names and false values', () => {
  expect(toDetailsText({ name: 'ci', limit: 100 })).toBe('limit 100')
  expect(toDetailsText({ from: 'member', to: 'admin' })).toBe('from member, to admin')
  expect(toDetailsText({ role: 'viewer', isBound: true })).toBe('role viewer, bound')
  expect(toDetailsText({ role: 'viewer', isBound: false, keepDays: null })).toBe('role viewer')
  expect(toDetailsText({ kind: 'top' })).toBe('top values')
  expect(toDetailsText({ overlapHours: 24 })).toBe('overlap hours 24')
  expect(toDetailsText({})).toBe('')
})

test('dashboard §11 an action has a description, or is shown as it is', () => {
  expect(toActionText('key.revoked')).toBe('revoked the API key')
  expect(toActionText('server.did')).toBe('server.did')
  expect(listActionsOn('session')).toEqual([
    'session.created',
    'session.ended',
    'session.refused',
    'session.strengthened',
    'session.verified',
  ])
  expect(listActionsOn('key')).not.toContain('keys.created')
  expect(listActionsOn('')).toEqual([])
})
