import { Fault } from '../errors.ts'
import { fail, newCall } from '../http/call.ts'

type Answer = Response | Promise<Response>

/** Lets requests in flight finish before the listener closes. */
export interface Drain {
  readonly isDraining: boolean
  /** Answers by `answer`, or refuses once the drain has begun. */
  run(answer: () => Answer): Answer
  /** Resolves when the last request in flight is answered. */
  start(): Promise<void>
}

export function createDrain(): Drain {
  const empty = Promise.withResolvers<void>()
  let inFlight = 0
  let isDraining = false
  return {
    get isDraining() {
      return isDraining
    },
    async run(answer) {
      // Nothing of the request was done: the next server, or the next start, can have it.
      if (isDraining) {
        return fail(
          newCall(),
          new Fault('unavailable', 'The server is stopping, try again shortly', {
            Connection: 'close',
          }),
        )
      }
      inFlight++
      try {
        return await answer()
      } finally {
        inFlight--
        if (isDraining && inFlight === 0) empty.resolve()
      }
    },
    start() {
      isDraining = true
      if (inFlight === 0) empty.resolve()
      return empty.promise
    },
  }
}
