import fc, { type Arbitrary } from 'fast-check'
import { RUNS, SEED, type Lane, type World } from './world.ts'

const LANES = 8

/** Longer than any run takes: it catches hangs. */
export const TIMEOUT_MS = 120_000 + RUNS * 50

/**
 * Checks a property of single requests in several projects at once, with a `share` of all runs.
 * `open` returns the check of one request in a lane. A failure shows a seed; with it, the failing
 * lane runs first.
 */
export async function checkInLanes<Request>(
  world: World,
  share: number,
  arbitrary: Arbitrary<Request>,
  open: (lane: Lane) => Checker<Request>,
): Promise<void> {
  const numRuns = Math.ceil((RUNS * share) / LANES)
  const work = Array.from({ length: LANES }, async (_, n) => {
    using stack = new DisposableStack()
    const start = async () => open(stack.use(await world.openLane()))
    let checker = await start()
    let done = 0
    const property = fc.asyncProperty(arbitrary, async request => {
      try {
        await checker.check(request)
        if (++done % 100 === 0) await world.expectHealthy()
      } catch (error) {
        // A failed run may leave wrong knowledge of this project: shrinking starts with another
        // one.
        checker = await start()
        throw error
      }
    })
    await fc.assert(property, {
      seed: SEED + n,
      numRuns,
      interruptAfterTimeLimit: TIMEOUT_MS - 10_000,
    })
    await checker.finish?.()
  })
  const failed = (await Promise.allSettled(work)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  await world.expectHealthy()
}

export interface Checker<Request> {
  check(request: Request): Promise<void>
  /** Checks the project once all requests were made. */
  finish?(): Promise<void>
}
