import { Fault } from '../errors.ts'
import { createSlots } from '../slots.ts'

/** Half of the connections that requests read by, so that nobody alone can hold all of them. */
const EACH = 4
const MAX_WAITING = 100

export interface Shares {
  /** Runs `work` once the caller has less than four under way. Throws `rate_limited` where a hundred wait already. */
  run<Result>(caller: string, work: () => Promise<Result>): Promise<Result>
}

/** Lets each caller have a share of what all read by. */
export function createShares(): Shares {
  const slots = createSlots(EACH, MAX_WAITING)
  return {
    async run(caller, work) {
      const slot = await slots.take(caller)
      if (!slot) {
        throw new Fault('rate_limited', 'Too many requests at once, try again in 1 s', {
          'Retry-After': '1',
        })
      }
      try {
        return await work()
      } finally {
        slot.release()
      }
    },
  }
}
