import { expect, test } from 'bun:test'
import { createBatcher } from '../../src/db/batch.ts'
import type { Fault } from '../../src/errors.ts'

interface Job {
  group: string
  bytes: number
}

/** Returns a batcher of jobs with a group and a size, and the batches that it started. */
function create() {
  const started: { jobs: Job[]; finish(): void }[] = []
  const batcher = createBatcher<Job, Job, Job>({
    run: jobs => {
      const done = Promise.withResolvers<Job[]>()
      started.push({ jobs, finish: () => done.resolve(jobs) })
      return done.promise
    },
    toResult: row => row,
    toGroup: ({ group }) => group,
    toBytes: ({ bytes }) => bytes,
    maxJobs: 100,
    maxWaiting: 1_000,
    groupShare: 0.5,
  })
  return { batcher, started }
}

const turn = () => new Promise(resolve => setImmediate(resolve))
const small = (group: string): Job => ({ group, bytes: 500 })
const large = (group: string): Job => ({ group, bytes: 256 * 1024 })

test('§3 a job waits for few large jobs of another group, however many there are', async () => {
  const { batcher, started } = create()
  const results = Array.from({ length: 50 }, () => batcher.add(large('a')))
  await turn()
  results.push(batcher.add(small('b')))
  started[0]?.finish()
  await turn()
  expect(started[1]?.jobs).toContainEqual(small('b'))
  expect(started[1]?.jobs.length).toBeLessThanOrEqual(3)
  while (batcher.waiting > 0 || started.length < 26) {
    started.at(-1)?.finish()
    await turn()
  }
  started.at(-1)?.finish()
  expect(await Promise.all(results)).toHaveLength(51)
  await batcher.drain()
})

test('jobs of one group keep their order, and each gets its own row', async () => {
  const { batcher, started } = create()
  const jobs = Array.from({ length: 250 }, (_, n) => ({ group: n % 3 ? 'a' : 'b', bytes: n }))
  const results = jobs.map(job => batcher.add(job))
  for (let batch = 0; batch < 3; batch++) {
    await turn()
    started[batch]?.finish()
    await turn()
  }
  expect(await Promise.all(results)).toEqual(jobs)
  const inOrder = started.flatMap(({ jobs: batch }) => batch)
  for (const group of ['a', 'b']) {
    const isGroup = (job: Job) => job.group === group
    expect(inOrder.filter(isGroup)).toEqual(jobs.filter(isGroup))
  }
})

test('a group may fill half of the queue; another group still has room', async () => {
  const { batcher, started } = create()
  const jobs = Array.from({ length: 510 }, () =>
    batcher.add(small('a')).catch((e: Fault) => e.code),
  )
  const other = batcher.add(small('b'))
  await turn()
  for (let at = 0; at < started.length; at++) {
    started[at]?.finish()
    await turn()
  }
  expect(await other).toEqual(small('b'))
  const refused = (await Promise.all(jobs)).filter(result => result === 'unavailable')
  expect(refused).toHaveLength(10)
})

test('one batch is in flight, and a drain waits for the last one', async () => {
  const { batcher, started } = create()
  const results = []
  for (let n = 0; n < 3; n++) {
    results.push(batcher.add(small('a')))
    await turn()
  }
  expect(started.map(({ jobs }) => jobs.length)).toEqual([1])
  expect(batcher.waiting).toBe(2)
  let isDrained = false
  const drained = batcher.drain().then(() => (isDrained = true))
  started[0]?.finish()
  await turn()
  expect(started.map(({ jobs }) => jobs.length)).toEqual([1, 2])
  expect(isDrained).toBe(false)
  started[1]?.finish()
  await drained
  expect(await Promise.all(results)).toHaveLength(3)
})
