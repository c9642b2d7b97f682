import { expect, onTestFinished, test } from 'bun:test'
import { EventEmitter } from 'node:events'
import { createProviderClients } from '../../src/access/openid/provider-client.ts'
import { configureLog, limitLines, logger } from '../../src/base/log.ts'
import { tryToRecord } from '../../src/delivery/outbox/delivery-kind.ts'
import { toFailure } from '../../src/http/failures.ts'
import { logFailure } from '../../src/log/feed/read-events.ts'
import { captureLog, configureTestLog } from '../support/log.ts'
import { until } from '../support/until.ts'

test.each([
  [undefined, false, true],
  [undefined, true, false],
  ['json', true, true],
  ['text', false, false],
] as const)('LOG_FORMAT=%s, a terminal: %p, writes JSON: %p', (format, isTTY, isJson) => {
  const lines: string[] = []
  onTestFinished(configureTestLog)
  configureLog('warning', { isTTY, write: line => lines.push(line) }, format)
  logger('db').warn('The disk of {name} is full', { name: 'db-1' })
  const [line = '', ...others] = lines
  expect(others).toEqual([])
  expect(line).toEndWith('\n')
  if (isJson)
    expect(JSON.parse(line)).toMatchObject({ level: 'WARN', properties: { name: 'db-1' } })
  else expect(line).toEndWith(" warning db: The disk of 'db-1' is full\n")
})

test('a stream that fails costs lines, and not the program', () => {
  const stream = Object.assign(new EventEmitter(), { write: () => true })
  onTestFinished(configureTestLog)
  configureLog('warning', stream)
  expect(stream.emit('error', new Error('No space left on device'))).toBe(true)
})

test('a line of text ends with the properties that its message does not name', () => {
  const lines: string[] = []
  onTestFinished(configureTestLog)
  configureLog('warning', { write: line => lines.push(line) }, 'text')
  const stack = '    at run (a.ts:1:2)\n    at \u001b[2Jmain (b.ts:3:4)'
  const given = { requestId: 'req_1', stack, left: undefined, input: 'a b\nforged \u001b[2J', n: 2 }
  logger('http').error('Request failed: {reason}', { reason: 'broken', ...given })
  logger('http').warn('Request failed: {reason}', { reason: 'broken', stack: undefined })
  expect(lines.map(line => line.slice(line.indexOf('http: ')))).toEqual([
    "http: Request failed: 'broken' requestId=req_1 input='a b\\nforged \\x1B[2J' n=2\n" +
      '    at run (a.ts:1:2)\n    at ?[2Jmain (b.ts:3:4)\n',
    "http: Request failed: 'broken'\n",
  ])
})

test('a reason has its first line at once, and one line with the count of all', async () => {
  const lines: string[] = []
  const warn = limitLines<string>((reason, count, id) => lines.push(`${reason} ${count} ${id}`), 20)
  for (let n = 1; n <= 1_000; n++) warn('disk full', `r${n}`)
  warn('too slow', 'r1001')
  expect(lines).toEqual(['disk full 1 r1', 'too slow 1 r1001'])
  await until(() => lines.length === 3)
  expect(lines[2]).toBe('disk full 1000 r1')
  warn('disk full', 'r1002')
  expect(lines[3]).toBe('disk full 1 r1002')
})

test('invented reasons do not make lines without end', () => {
  const lines: string[] = []
  const warn = limitLines<string>(reason => lines.push(reason), 60_000)
  for (let n = 0; n < 1_000; n++) warn(`reason ${n}`, 'r')
  expect(lines).toHaveLength(101)
  expect(lines.at(-1)).toBe('several reasons')
})

const clients = createProviderClients({ egress: {} as never })
const provider = { name: 'google', label: 'Google', issuer: 'https://accounts.test' } as never
/** Lines that a caller can cause as often as it wants, if there is a bug or a bad response. */
const REPEATABLE: [string, (error: Error) => unknown][] = [
  ['Request failed', error => toFailure(error, 'id')],
  ['Reading messages failed', error => logFailure('Reading messages failed', error)],
  ['A response of the provider', error => clients.refuse(provider, error)],
  ['could not be recorded', error => tryToRecord(() => Promise.reject(error))],
]

test.each(REPEATABLE)(
  '"%s" is one line at first, however often it happens',
  async (text, cause) => {
    using log = captureLog()
    const reason = `broken ${crypto.randomUUID()}`
    for (let n = 0; n < 100; n++) await cause(new TypeError(reason))
    const lines = log.lines.filter(line => line.includes(reason))
    expect(lines).toEqual([expect.stringContaining(text)])
  },
)
