import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BatchResult } from './batch.ts'
import { getKind, getLane, planBatches } from './lanes.ts'
import { createOutputReader } from './output.ts'
import { summarize, type LaneReport } from './report.ts'
import { judge } from './verdict.ts'

const OUTPUT = `bun test v1.4.5 (a7733435c)

test/base/a.test.ts:
(pass) adds [0.12ms]
(skip) waits
a line of a test

test/base/b.test.tsx:
error: expect(received).toBe(expected)
(fail) group > subtracts [7.00ms]
(pass) has brackets [not a time]

test/base/c.test.ts:
(pass) divides [1.20s]

1 tests failed:
(fail) group > subtracts [7.00ms]

 3 pass
 12 expect() calls
 1 skip
 1 fail
Ran 5 tests across 3 files. [12.00ms]`

function read(text: string) {
  const reader = createOutputReader()
  for (const [nth, line] of text.split('\n').entries()) reader.read(line, nth)
  return reader
}

function toResult(text: string, more: Partial<BatchResult> = {}): BatchResult {
  const files = ['test/base/a.test.ts', 'test/base/b.test.tsx', 'test/base/c.test.ts']
  return {
    batch: { kind: 'unit', files, expectedMs: 0 },
    ending: 'complete',
    exit: '0',
    files: read(text).files,
    assertions: 0,
    left: [],
    ...more,
  }
}

function toReport(more: Partial<LaneReport>): LaneReport {
  return {
    lane: 'quick',
    seconds: 12.3,
    assertions: 9,
    files: [
      { file: 'test/base/a.test.ts', seconds: 1, outcomes: ['pass', 'pass'] },
      { file: 'test/base/b.test.ts', seconds: 2, outcomes: ['pass'] },
    ],
    reruns: [],
    left: [],
    ended: [],
    leftOut: [],
    peakMemory: 2 ** 30,
    processor: { ownS: 20, busy: 0.934 },
    factor: 1,
    ...more,
  }
}

describe('the output of bun test', () => {
  test('is read by file, with the outcome of each test', () => {
    const { files, isComplete, assertions } = read(OUTPUT)
    expect(isComplete).toBe(true)
    expect(assertions).toBe(12)
    expect(files.map(({ file, tests }) => [file, tests])).toEqual([
      [
        'test/base/a.test.ts',
        [
          { name: 'adds', outcome: 'pass' },
          { name: 'waits', outcome: 'skip' },
        ],
      ],
      [
        'test/base/b.test.tsx',
        [
          { name: 'group > subtracts', outcome: 'fail' },
          { name: 'has brackets [not a time]', outcome: 'pass' },
        ],
      ],
      ['test/base/c.test.ts', [{ name: 'divides', outcome: 'pass' }]],
    ])
  })

  test('without its summary is incomplete, and its last file has not ended', () => {
    const { files, isComplete } = read(OUTPUT.slice(0, OUTPUT.indexOf('test/base/c')))
    expect(isComplete).toBe(false)
    expect(files.map(({ endedMs }) => endedMs)).toEqual([7, undefined])
  })
})

describe('a verdict', () => {
  test('lets files that never started run again', () => {
    const { passed, reruns } = judge(toResult('', { ending: 'crashed' }))
    expect(passed).toEqual([])
    expect(reruns.map(({ why }) => why)).toEqual(['crashed', 'crashed', 'crashed'])
  })

  test('misses a file that a complete run does not name', () => {
    const [head = ''] = OUTPUT.replace('(fail)', '(pass)').split('test/base/c.test.ts:')
    const { reruns } = judge(toResult(`${head}\nRan 4 tests across 2 files.`))
    expect(reruns.map(({ file, why }) => [file, why])).toEqual([['test/base/c.test.ts', 'failed']])
  })
})

describe('the summary', () => {
  const summary = (more: Partial<LaneReport>, isCi = false) => summarize(toReport(more), isCi)

  test('names lane, files, tests, seconds, memory and the slowest files', () => {
    const { lines, passed, failed } = summary({})
    expect(failed).toBe(0)
    expect(lines).toContain('Lane quick: 2 files, 3 tests, 9 assertions, 12 s, at most 1.0 GiB')
    expect(lines).toContain('20 s of processor time at least, the machine 93 % busy')
    expect(lines.filter(line => line.endsWith('.ts'))).toEqual([
      '     2.0 s  test/base/b.test.ts',
      '     1.0 s  test/base/a.test.ts',
    ])
    expect(passed).toBe(3)
  })

  test('is red with more than five flaky files', () => {
    const reruns = ['a', 'b', 'c', 'd', 'e', 'f'].map(name => ({
      first: { file: `test/base/${name}.test.ts`, why: 'failed' as const, tests: [], lines: [] },
      again: undefined,
      load: undefined,
    }))
    expect(summary({ reruns: reruns.slice(1) }).failed).toBe(0)
    expect(summary({ reruns }).failed).toBe(1)
  })

  test('says what was left out and why; CI leaves nothing out', () => {
    const files: LaneReport['files'] = [{ file: 'test/a.test.ts', seconds: 1, outcomes: ['skip'] }]
    const left = { files, leftOut: ['tests that need nginx'] }
    expect(summary(left).lines.slice(-2)).toEqual(['Left out: 1 tests', '  tests that need nginx'])
    expect(summary(left).failed).toBe(0)
    expect(summary(left, true).failed).toBe(1)
    // A test that passes can leave out a part of it.
    const part = { files: [{ ...files[0]!, outcomes: ['pass' as const] }], leftOut: left.leftOut }
    expect(summary(part, true).lines.slice(-2)).toEqual([
      'Left out: 0 tests',
      '  tests that need nginx',
    ])
    expect(summary(part, true).failed).toBe(0)
  })
})

describe('the plan', () => {
  const root = join(import.meta.dirname, '..')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(path => /\.test\.tsx?$/.test(path))
    .map(path => join('test', path))

  test('has every file once, fast kinds first, and one kind in a batch', () => {
    const batches = planBatches(files, {})
    expect(batches.flatMap(batch => batch.files).toSorted()).toEqual(files.toSorted())
    for (const { kind, files } of batches) expect([...new Set(files.map(getKind))]).toEqual([kind])
    const kinds = batches.map(({ kind }) => kind)
    expect([...new Set(kinds)]).toEqual(kinds.filter((kind, nth) => kind !== kinds[nth - 1]))
    expect(kinds[0]).toBe('unit')
  })

  test('needs for the quick lane no tools but those of a bare Debian, and Node for npx', () => {
    const found = files
      .filter(file => getLane(file) === 'quick' && !file.startsWith('test/runner/'))
      .filter(file => {
        const text = readFileSync(join(root, '..', file), 'utf8')
        return /hasTool\((?!'(node|script)')|DebianPostgres|(pooler|nginx|chromium)\.ts'/.test(text)
      })
    expect(found).toEqual([])
  })

  test('puts short files together, and starts with the longest', () => {
    const durations = { 'test/base/a.test.ts': 4_000, 'test/base/b.test.ts': 20_000 }
    const plan = planBatches([...Object.keys(durations), 'test/base/c.test.ts'], durations)
    expect(plan.map(batch => batch.files)).toEqual([
      ['test/base/b.test.ts'],
      ['test/base/c.test.ts', 'test/base/a.test.ts'],
    ])
  })

  test('keeps files that leave a server to the next one from those that watch the whole process', () => {
    const [a, b, c] = ['a', 'b', 'c'].map(name => `test/log/${name}.api.test.ts`) as [
      string,
      string,
      string,
    ]
    const plan = planBatches([a, b, c], {}, file => file !== b)
    expect(plan.map(({ files }) => files)).toEqual([[a, c], [b]])
  })

  test('begins with long batches and ends with short ones, so that they end together', () => {
    const names = Array.from({ length: 24 }, (_, nth) => `test/log/${nth}.api.test.ts`)
    const plan = planBatches(names, Object.fromEntries(names.map(name => [name, 5_000])))
    expect(plan.map(({ files }) => files.length)).toEqual([3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1])
    const long = planBatches(
      names,
      Object.fromEntries(names.map((name, nth) => [name, 20_000 + nth])),
    )
    expect(long[0]?.files).toEqual(['test/log/23.api.test.ts', 'test/log/22.api.test.ts'])
    // The batches of a kind that others follow are long to the end.
    const mixed = planBatches([...names, 'test/browser/feed.test.ts'], {})
    expect(mixed.map(({ files }) => files.length)).toEqual([6, 6, 6, 6, 1])
  })

  test.each([
    ['test/runtimes/executable.test.ts', 'slow', 'processes'],
    ['test/database/embedded/binaries.processes.test.ts', 'quick', 'processes'],
    ['test/docs/examples.api.test.ts', 'slow', 'api'],
    ['test/clients/typescript/request.api.test.ts', 'quick', 'api'],
    ['test/faults/sweep-append.test.ts', 'quick', 'processes'],
    ['test/browser/feed.test.ts', 'browser', 'browser'],
    ['test/browser/first-minute.test.ts', 'slow', 'browser'],
    ['test/access/keys/key-routes.api.test.ts', 'quick', 'api'],
    ['test/layers.test.ts', 'quick', 'unit'],
    ['test/properties/requests.test.ts', 'quick', 'processes'],
  ] as const)('puts %s into the lane %s', (file, lane, kind) => {
    expect(getLane(file)).toBe(lane)
    expect(getKind(file)).toBe(kind)
  })
})

test('no module of test/support registers hooks, which only the first file of a process would have', () => {
  const folder = join(import.meta.dirname, '../support')
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const found = names.filter(
    name =>
      name.endsWith('.ts') &&
      /^(before|after)(Each|All)\(/m.test(readFileSync(join(folder, name), 'utf8')),
  )
  expect(found).toEqual([])
})
