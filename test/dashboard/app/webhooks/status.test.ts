import { expect, test } from 'bun:test'
import {
  isDefault,
  SCOPE_NAMES,
  toScopeSummary,
} from '../../../../src/dashboard/app/keys/scopes.ts'
import type { Webhook } from '../../../../src/delivery/webhooks/webhook-schema.ts'
import { fromInputTime, toInputTime } from '../../../../src/dashboard/app/time.ts'
import { toStatus } from '../../../../src/dashboard/app/webhooks/status.ts'
import { DEFAULT_SCOPES, SCOPES } from '../../../../src/access/keys/schema.ts'

const SINCE = '2026-11-20T09:00:00.000Z'
const UNTIL = '2026-11-20T09:30:00.000Z'

test('each scope has a description, and all scopes together have their own', () => {
  expect([...SCOPE_NAMES]).toEqual([...SCOPES])
  expect(toScopeSummary(SCOPES)).toBe('full access')
  expect(SCOPE_NAMES.filter(isDefault)).toEqual([...DEFAULT_SCOPES])
  expect(toScopeSummary(DEFAULT_SCOPES)).toBe('full access, except to erase users')
  expect(toScopeSummary(['events:write'])).toBe('may send events')
  expect(toScopeSummary(['events:write', 'identities:read'])).toBe('may send events and read users')
})

test('a moment survives the input to the minute', () => {
  const atMs = Date.parse(SINCE)
  expect(toInputTime(atMs)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/)
  expect(fromInputTime(toInputTime(atMs))).toBe(SINCE)
  expect(fromInputTime('')).toBe('')
})

const CALM = { state: 'closed', failures: 0, failingSince: null, pausedUntil: null } as const
const FAILING = { failures: 12, failingSince: SINCE } as const

function stateOf(fields: Partial<Webhook>) {
  const known = { isEnabled: true, disabledAt: null, disabledReason: null, breaker: CALM }
  const {
    word,
    tone,
    sentence: [before, at, after] = [],
  } = toStatus({
    ...known,
    ...fields,
  } as Webhook)
  return [word, tone, before && `${before} ${at}${after}`]
}

test('the state of a webhook is described in words', () => {
  expect(stateOf({})).toEqual(['Active', 'good', undefined])
  expect(stateOf({ breaker: { ...CALM, failures: 1, failingSince: SINCE } })).toEqual([
    'Failing',
    'bad',
    `1 failure since ${SINCE}.`,
  ])
  expect(stateOf({ breaker: { ...FAILING, state: 'paused', pausedUntil: UNTIL } })).toEqual([
    'Paused',
    'bad',
    `Paused until ${UNTIL}, after 12 failures in a row. Pending events are sent then.`,
  ])
  expect(stateOf({ breaker: { ...FAILING, state: 'limited', pausedUntil: UNTIL } })).toEqual([
    'Waiting',
    'plain',
    `Waits until ${UNTIL}, as the receiver asked. Pending events are sent then.`,
  ])
  expect(stateOf({ breaker: { ...FAILING, state: 'probing', pausedUntil: UNTIL } })).toEqual([
    'Retrying',
    'plain',
    `12 failures in a row since ${SINCE}. The pause is over. The next delivery shows whether it works again.`,
  ])
  expect(
    stateOf({
      ...{ isEnabled: false, disabledAt: SINCE, disabledReason: 'An admin disabled it' },
      breaker: { ...FAILING, state: 'paused', pausedUntil: UNTIL },
    }),
  ).toEqual([
    'Disabled',
    'bad',
    `Disabled ${SINCE}: An admin disabled it. No events are sent until you enable it.`,
  ])
})
