// The program of every candidate of `bench queue`, on Bun and on Node.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

/** A queue of jobs that do nothing, in its own database. */
export interface Queue {
  /** Prepares the subjects of `count` jobs; not measured. */
  prepare(count: number): Promise<void>
  /** Enqueues `count` jobs as fast as possible; resolves when they are committed. */
  enqueue(count: number): Promise<void>
  /** Enqueues `count` jobs of one hanging target, which block each other. */
  enqueueStuck(count: number): Promise<void>
  /** Enqueues one job; resolves when it is committed, with the name that `onStart` will get. */
  add(): Promise<string>
  /** Starts to work; `onStart` gets the name of each job that starts. */
  work(onStart: (job: string) => void): Promise<void>
  /** Resolves with true if every job is done and recorded, except for the stuck ones. */
  isDone(): Promise<boolean>
  /** Stops working. */
  stop(): Promise<void>
}

/** Answers lines of input, `<command> <numbers>`, with a line of JSON each. */
export async function runQueue(queue: Queue): Promise<void> {
  console.log('READY')
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, ...numbers] = line.split(' ')
    const [count = 0, perSecond = 1] = numbers.map(Number)
    if (command === 'stick') await queue.enqueueStuck(count)
    if (command === 'prepare') await queue.prepare(count)
    const answer =
      command === 'enqueue'
        ? await enqueue(queue, count)
        : command === 'drain'
          ? await drain(queue, count)
          : command === 'pace'
            ? await pace(queue, count, perSecond)
            : {}
    console.log(JSON.stringify(answer))
  }
}

/** Enqueues jobs whose subjects `prepare` has made. */
async function enqueue(queue: Queue, count: number) {
  const startedMs = performance.now()
  await queue.enqueue(count)
  return { perSecond: toRate(count, startedMs) }
}

async function drain(queue: Queue, count: number) {
  const starts = new Set<string>()
  const startedMs = performance.now()
  await queue.work(job => {
    // No attempt failed and no lease ended: each job starts once.
    if (starts.has(job)) fail(`${job} started twice`)
    starts.add(job)
  })
  while (starts.size < count || !(await queue.isDone())) await sleep(5)
  if (starts.size > count) fail(`${starts.size} jobs started, of ${count}`)
  const perSecond = toRate(count, startedMs)
  await queue.stop()
  return { perSecond }
}

async function pace(queue: Queue, count: number, perSecond: number) {
  const started = new Map<string, number>()
  await queue.work(job => void started.set(job, performance.now()))
  const beganMs = performance.now()
  const added: Promise<{ job: string; atMs: number }>[] = []
  while (added.length < count) {
    const atMs = performance.now()
    if (atMs - beganMs < (added.length * 1000) / perSecond) await sleep(1)
    else added.push(queue.add().then(job => ({ job, atMs })))
  }
  const jobs = await Promise.all(added)
  while (started.size < count || !(await queue.isDone())) await sleep(5)
  await queue.stop()
  const delays = jobs.map(({ job, atMs }) => (started.get(job) ?? NaN) - atMs).sort((a, b) => a - b)
  return { p99Ms: delays[Math.floor(delays.length * 0.99)] }
}

function toRate(count: number, startedMs: number): number {
  return (count * 1000) / (performance.now() - startedMs)
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(1)
}
