import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { listRunning } from '../support/leftovers.ts'
import { makeFolder } from '../support/scratch.ts'
import { summarize, type LaneReport } from './report.ts'
import { runLane } from './run-lane.ts'

const toFile = (name: string) => `test/runner/fixtures/${name}.fixture.ts`

/** Runs fixtures as a lane, in this order. A wedge is found after 2 s. */
async function run(...names: string[]): Promise<{ report: LaneReport; folder: string }> {
  const folder = makeFolder()
  process.env['FLAKE_MARKER'] = join(folder, 'marker')
  const report = await runLane('light', names.map(toFile), {
    scratch: folder,
    factor: 1,
    quietMs: 2_000,
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
  expect(toSummary(report).lines).toContain(`FAILED ${toFile('fails')} › fails`)
  expect(toSummary(report)).toMatchObject({ passed: 2, failed: 1 })
})

test('an error outside of tests is red', async () => {
  const { report } = await run('throws')
  expect(toSummary(report).lines).toContain(`FAILED ${toFile('throws')} › (outside of tests)`)
})

test('a test that fails once is green, and named with its seed', async () => {
  const { report } = await run('flakes')
  expect(report.reruns.map(({ again }) => again)).toEqual([undefined])
  const [flaky] = toSummary(report).lines.filter(line => line.startsWith('FLAKY'))
  expect(flaky).toStartWith(`FLAKY ${toFile('flakes')} › flakes (FLAKE_SEED=42)`)
  expect(toSummary(report)).toMatchObject({ passed: 1, failed: 0 })
})

test.each([
  ['wedges', 'wedged'],
  ['crashes', 'crashed'],
] as const)('a process that %s is ended, and its file runs once more', async (name, why) => {
  const { report, folder } = await run('passes', name)
  expect(report.reruns).toMatchObject([
    { first: { file: toFile(name), why }, again: { file: toFile(name), why } },
  ])
  expect(report.files.map(({ file }) => file)).toContain(toFile('passes'))
  expect(toSummary(report).lines).toContain(`FAILED ${toFile(name)} › (${why})`)
  expect(listRunning(folder)).toEqual([])
})

test('a process that a test leaves is named and ended', async () => {
  const { report, folder } = await run('leaves')
  expect(report.left).toEqual([
    expect.stringMatching(/^process \d+: sleep 1000, by one of .*leaves\.fixture\.ts$/),
  ])
  expect(toSummary(report).failed).toBe(1)
  expect(listRunning(folder)).toEqual([])
})
