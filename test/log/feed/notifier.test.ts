import { expect, test } from 'bun:test'
import type { Hint } from '../../../src/base/hints.ts'
import type { Pool } from '../../../src/database/pool.ts'
import {
  createNotifier,
  parsePayload,
  takePayload,
  toPayloadWord,
} from '../../../src/log/feed/notifier.ts'
import { until } from '../../support/until.ts'

const A = '0193a5b0-0000-7000-8000-000000000001'
const B = '0193a5b0-0000-7000-8000-000000000002'
const HINTS: Hint[] = [
  { kind: 'events', projectId: A },
  { kind: 'deleted', projectId: A, seq: 5 },
  { kind: 'restored', projectId: B, seq: 9_007_199_254_740_991 },
  { kind: 'unread', projectId: A, accountId: B },
  { kind: 'access' },
]

test('hints survive encoding and decoding', () => {
  const words = new Set(HINTS.map(toPayloadWord))
  expect(parsePayload(takePayload('me', words))).toEqual({ origin: 'me', hints: HINTS })
  expect(words.size).toBe(0)
})

test("a payload never exceeds Postgres' limit: many projects become all, other hints wait", () => {
  const words = new Set<string>()
  for (let nth = 0; nth < 300; nth++) words.add(`e:${crypto.randomUUID()}`)
  for (let seq = 1; seq <= 300; seq++)
    words.add(toPayloadWord({ kind: 'deleted', projectId: A, seq }))
  const seqs: number[] = []
  for (let nth = 0; words.size > 0; nth++) {
    const payload = takePayload('me', words)
    expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(7_500)
    const { hints } = parsePayload(payload)
    expect(hints.includes('anyEvents')).toBe(nth === 0)
    for (const hint of hints) if (hint !== 'anyEvents' && 'seq' in hint) seqs.push(hint.seq)
  }
  expect(seqs).toEqual(Array.from({ length: 300 }, (_, nth) => nth + 1))
})

test.each([
  '',
  'beat',
  'me e:',
  'me e:nonsense x d:1',
  `me d:${A}:0`,
  `me d:${A}:1e3`,
  `me u:${A}:x`,
  `me e:${A}'`,
])('a foreign payload is ignored: %p', payload => {
  expect(parsePayload(payload).hints).toEqual([])
})

/** Returns a notifier on a pool whose statements are recorded, and end on request. */
function setUp() {
  const sent: { payload: string; end: (error?: Error) => void }[] = []
  const pool = {
    run: (work: (sql: unknown) => Promise<unknown>) =>
      work((_: unknown, __: string, payload: string) => {
        const done = Promise.withResolvers<void>()
        sent.push({
          payload,
          end: error => (error ? done.reject(error) : done.resolve()),
        })
        return done.promise
      }),
  } as unknown as Pool
  return { sent, notifier: createNotifier({ pool, minIntervalMs: 20 }) }
}

test('research §1 the first hint is sent at once, hints meanwhile are sent together, and the last one is sent, too', async () => {
  const { sent, notifier } = setUp()
  const taken: number[] = []
  notifier.follow(hints => taken.push(hints.length))
  notifier.send([{ kind: 'events', projectId: A }])
  expect(sent).toHaveLength(1)
  for (let nth = 0; nth < 100; nth++) notifier.send([{ kind: 'events', projectId: B }])
  // Handlers in this process get all of them at once.
  expect(taken).toHaveLength(101)
  expect(sent).toHaveLength(1)
  sent[0]?.end()
  await until(() => sent.length === 2)
  expect(parsePayload(sent[1]?.payload ?? '').hints).toEqual([{ kind: 'events', projectId: B }])
  // Lost hints are not sent again: other servers find the changes by polling.
  notifier.send([{ kind: 'access' }])
  expect(sent).toHaveLength(2)
  sent[1]?.end(new Error('The database is gone'))
  await until(() => sent.length === 3)
  sent[2]?.end()
  await notifier.stop()
})

test('a hint whose handler throws affects no other', () => {
  const { sent, notifier } = setUp()
  notifier.follow(() => {
    throw new Error('A bug')
  })
  notifier.send([{ kind: 'access' }])
  expect(sent).toHaveLength(1)
})
