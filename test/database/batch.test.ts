import { expect, test } from 'bun:test'
import postgres from 'postgres'
import { createBatcher } from '../../src/database/batch.ts'
import { LOCK_TIMEOUT, QUERY_CANCELED } from '../../src/database/sql.ts'
import { until } from '../support/until.ts'

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
  })
  return { batcher, started }
}

/** Finishes each batch as it starts, until nothing waits. */
async function finishAll(
  { drain }: ReturnType<typeof create>['batcher'],
  started: ReturnType<typeof create>['started'],
): Promise<void> {
  let isOver = false
  void drain().then(() => (isOver = true))
  while (!isOver) {
    await turn()
    started.at(-1)?.finish()
  }
}

const turn = () => new Promise(resolve => setImmediate(resolve))
const small = (group: string): Job => ({ group, bytes: 500 })
const large = (group: string): Job => ({ group, bytes: 256 * 1024 })

test('§3 a job waits for one batch of large jobs of another group, however many there are', async () => {
  const { batcher, started } = create()
  const results = Array.from({ length: 50 }, (_, n) => batcher.add(large(n % 2 ? 'a' : 'c')))
  await turn()
  results.push(batcher.add(small('b')))
  await finishAll(batcher, started)
  expect(started[0]?.jobs).toHaveLength(1)
  expect(started[1]?.jobs).toEqual([small('b')])
  expect(started).toHaveLength(51)
  expect(await Promise.all(results)).toHaveLength(51)
})

test('§3 small jobs of another group do not keep a large job waiting, and get a part of each batch', async () => {
  const { batcher, started } = create()
  const results = Array.from({ length: 60 }, () => batcher.add({ group: 'a', bytes: 20_000 }))
  results.push(batcher.add(large('b')), batcher.add(small('c')))
  await finishAll(batcher, started)
  const groups = started.map(({ jobs }) => jobs.map(({ group }) => group).join(''))
  expect(groups.slice(0, 4)).toEqual(['b', 'acaa', 'aaaaaaaaaaaaa', 'aaaaaaaaaaaaa'])
  expect(await Promise.all(results)).toHaveLength(62)
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

test.each([undefined, 1])(
  'a job added as the last batch ends is not left waiting (%p ms)',
  async collectMs => {
    const batcher = createBatcher<number, number, number>({
      run: async jobs => jobs,
      toResult: row => row,
      maxJobs: 100,
      ...(collectMs !== undefined && { collectMs }),
    })
    // Each job is added from another place of the microtask queue.
    for (let ticks = 0; ticks < 8; ticks++) {
      const last = batcher.add(ticks)
      await last
      for (let tick = 0; tick < ticks; tick++) await undefined
      expect(await batcher.add(-ticks)).toBe(-ticks)
    }
  },
)

/** Returns a batcher whose batches fail while they have a group of `broken`, and its batches. */
function createBreaking(
  broken: Pick<Map<string, string>, 'get'>,
  onRun?: (groups: string) => void,
) {
  const runs: { groups: string; isBrief: boolean }[] = []
  const batcher = createBatcher<Job, Job, Job>({
    async run(jobs, isBrief) {
      const groups = jobs.map(({ group }) => group)
      runs.push({ groups: groups.join(''), isBrief })
      onRun?.(groups.join(''))
      const code = groups.map(group => broken.get(group)).find(found => found !== undefined)
      if (code === undefined) return jobs
      throw Object.assign(new postgres.PostgresError('It took too long'), { code })
    },
    toResult: row => row,
    toGroup: ({ group }) => group,
    maxJobs: 100,
  })
  const add = (groups: string) =>
    Promise.all(
      [...groups].map(group =>
        batcher.add(small(group)).then(
          () => 'done',
          () => 'refused',
        ),
      ),
    )
  return { runs, add }
}

test.each(['40P01', '40001'])(
  'a batch that Postgres has rolled back with %s is retried, and then its jobs apart',
  async code => {
    const broken = new Map([['b', code]])
    const { runs, add } = createBreaking(broken)
    expect(await add('abc')).toEqual(['done', 'refused', 'done'])
    expect(runs.map(({ groups }) => groups)).toEqual(['abc', 'abc', 'a', 'b', 'c'])
  },
)

test.each(['40003', '08007'])(
  'a batch that ends with %s is not run again, because it can have been committed',
  async code => {
    const { runs, add } = createBreaking(new Map([['b', code]]))
    expect(await add('abc')).toEqual(['refused', 'refused', 'refused'])
    expect(runs).toHaveLength(1)
  },
)

test('§3 several locked groups make the others of a batch wait for one time-out', async () => {
  const broken = new Map(['a', 'b', 'c'].map(group => [group, LOCK_TIMEOUT]))
  const { runs, add } = createBreaking(broken)
  expect(await add('abcd')).toEqual(['refused', 'refused', 'refused', 'done'])
  expect(runs[0]).toEqual({ groups: 'abcd', isBrief: false })
  expect(runs.slice(1)).toEqual(['a', 'b', 'c', 'd'].map(groups => ({ groups, isBrief: true })))

  // Their pauses end, and they are still locked.
  runs.length = 0
  await until(async () => {
    await add('abc')
    return runs.length > 0
  })
  runs.length = 0
  await until(async () => {
    expect((await add('abcde')).slice(3)).toEqual(['done', 'done'])
    // Their pauses can end one after another.
    return [...'abc'].every(group => runs.some(({ groups }) => groups.includes(group)))
  })
  const waits = runs.filter(({ groups, isBrief }) => !isBrief && /[abc]/.test(groups))
  expect(waits).toEqual([])

  // After a success a group waits as usual.
  broken.clear()
  await until(async () => !(await add('abc')).includes('refused'))
  runs.length = 0
  await add('abc')
  expect(runs).toEqual([{ groups: 'abc', isBrief: false }])
})

test('a group that is locked for the first time beside one that was locked before waits', async () => {
  const broken = new Map([['a', LOCK_TIMEOUT]])
  // From the first batch that has both, when the pause of `a` is over.
  const { runs, add } = createBreaking(broken, groups => {
    if (groups === 'ab') broken.set('b', LOCK_TIMEOUT)
  })
  await add('ac')
  await until(async () => {
    runs.length = 0
    await add('ab')
    return runs.some(({ groups }) => groups === 'ab')
  })
  expect(runs).toEqual([
    { groups: 'ab', isBrief: true },
    { groups: 'b', isBrief: false },
    { groups: 'a', isBrief: true },
  ])
})

test('§3 a group whose statement is too slow is refused, and the others of its batch are not', async () => {
  const { runs, add } = createBreaking(new Map([['b', QUERY_CANCELED]]))
  expect(await add('abcd')).toEqual(['done', 'refused', 'done', 'done'])
  expect(runs.map(({ isBrief }) => isBrief)).toEqual([false, true, true, true, true])
})

test('a slow database is asked twice more, however many groups a batch has', async () => {
  const all = [...'abcdefghij']
  const { runs, add } = createBreaking(new Map(all.map(group => [group, QUERY_CANCELED])))
  expect(await add(all.join(''))).toEqual(all.map(() => 'refused'))
  expect(runs).toHaveLength(3)
})
