import { afterAll, expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { listRunning } from '../support/leftovers.ts'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase, dropDatabases } from '../support/servers/postgres.ts'
import { scaled } from '../support/until.ts'
import { summarize, type LaneReport } from './report.ts'
import { runLane } from './run-lane.ts'

const toFile = (name: string) => `test/runner/fixtures/${name}.fixture.ts`

/** Runs fixtures as a lane, in this order. A wedge is found after 3 s to 12 s. */
async function run(...names: string[]): Promise<{ report: LaneReport; folder: string }> {
  const folder = makeFolder()
  process.env['FLAKE_MARKER'] = join(folder, 'marker')
  const report = await runLane('quick', names.map(toFile), {
    scratch: folder,
    // The limits leave time for the start of a process, and pass twice in some tests.
    factor: () => Math.min(scaled(1), 4),
    dropDatabases,
    quietMs: 3_000,
    stuckMs: 6_000,
    graceMs: 100,
    // The longest file comes first.
    durations: Object.fromEntries(names.map((name, nth) => [toFile(name), names.length - nth])),
    print: () => {},
  })
  return { report, folder }
}

const toSummary = (report: LaneReport) => summarize(report, false)

test('a test that fails twice is red; other files of its process keep their result', async () => {
  const { report } = await run('passes', 'fails')
  expect(report.reruns.map(({ again }) => again?.tests)).toEqual([['fails']])
  expect(toSummary(report).lines.slice(-2)).toEqual([
    `FAILED ${toFile('fails')} › fails`,
    `  Repeat it alone: bun test --timeout 60000 ./${toFile('fails')}`,
  ])
  expect(toSummary(report)).toMatchObject({ passed: 2, failed: 1 })
})

test('an error outside of tests is red, and not the other files of its process', async () => {
  const { report } = await run('passes', 'throws')
  expect(report.reruns).toHaveLength(2)
  const { lines } = toSummary(report)
  expect(lines).toContain(`FAILED ${toFile('throws')} › (outside of tests)`)
  expect(lines.filter(line => line.startsWith('FLAKY'))).toEqual([])
})

test('a test that fails once is green, and named with its seed', async () => {
  const { report } = await run('flakes')
  expect(report.reruns.map(({ again }) => again)).toEqual([undefined])
  const [flaky] = toSummary(report).lines.filter(line => line.startsWith('FLAKY'))
  const named = `FLAKY ${toFile('flakes')} › flakes (FLAKE_SEED=42), load `
  expect(flaky).toStartWith(named)
  expect(flaky).toEndWith('. Explain it in test/flaky.md.')
  expect(toSummary(report)).toMatchObject({ passed: 1, failed: 0 })
})

test.each([
  ['wedges', 'wedged'],
  ['stuck', 'wedged'],
  ['crashes', 'crashed'],
] as const)('a process like %s is ended as %s, and its file runs once more', async (name, why) => {
  const { report, folder } = await run('passes', name)
  expect(report.reruns).toMatchObject([
    { first: { file: toFile(name), why }, again: { file: toFile(name), why } },
  ])
  expect(report.files.map(({ file }) => file)).toContain(toFile('passes'))
  const { lines } = toSummary(report)
  expect(lines).toContain(`RUN AGAIN ${toFile(name)}: its process ${why}`)
  expect(lines).toContain(`FAILED ${toFile(name)} › (${why})`)
  expect(listRunning(folder)).toEqual([])
})

test('a test that prints nothing for long and works is slow, not wedged', async () => {
  const { report } = await run('slow')
  expect(report.reruns).toEqual([])
  expect(toSummary(report)).toMatchObject({ passed: 1, failed: 0 })
})

test('a process that a test leaves is named and ended, though another file of its run fails', async () => {
  const { report, folder } = await run('leaves', 'flakes')
  const left = { what: expect.stringMatching(/^process \d+: sleep 1000$/), by: toFile('leaves') }
  expect(report.left).toEqual([left])
  const { lines, failed } = toSummary(report)
  expect(lines.at(-1)).toStartWith(`Left behind by ${toFile('leaves')}:\n  process `)
  expect(failed).toBe(1)
  expect(listRunning(folder)).toEqual([])
})

test('settings of the machine, and of a file .env, reach neither tests nor programs', async () => {
  process.env['DATABASE_URL'] = 'postgres://other'
  const { report } = await run('settings')
  delete process.env['DATABASE_URL']
  expect(toSummary(report)).toMatchObject({ passed: 1, failed: 0 })
})

/** Only a batch of this process has left it. */
const DATABASE = new RegExp(
  `^database ${process.env['TIDINGS_TEST_DATABASES'] ?? 'test_'}\\d+_left$`,
)
const socket = `/tmp/tidings-${process.pid.toString(16).padStart(12, '0')}`
afterAll(() => rmSync(socket, { recursive: true, force: true }))

test.each([false, true])(
  'leftovers of a failed file are gone before its rerun, and red if that leaves them again: %p',
  async isLeftAgain => {
    await cloneDatabase()
    process.env['FLAKE_SOCKET'] = socket
    process.env['FLAKE_LEAVES'] = isLeftAgain ? 'again' : ''
    const { report, folder } = await run('leaves-once', 'passes')
    const by = expect.stringContaining(toFile('leaves-once'))
    const left = [
      { what: expect.stringMatching(/^process \d+: sleep 1000$/), by },
      { what: expect.stringMatching(DATABASE), by },
    ]
    expect(report.ended).toEqual(left)
    expect(report.left).toEqual(isLeftAgain ? left : [])
    expect(report.reruns.map(({ again }) => again)).toEqual([undefined])
    expect(toSummary(report)).toMatchObject({ passed: 2, failed: isLeftAgain ? 1 : 0 })
    const ended = toSummary(report).lines.filter(line => line.startsWith('ENDED before '))
    expect(ended).toHaveLength(2)
    expect(listRunning(folder)).toEqual([])
    expect(existsSync(socket)).toBe(false)
  },
)
