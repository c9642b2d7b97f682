import { Fault } from '../errors.ts'
import { fail, newCall } from '../http/call.ts'

type MaybePromise = Response | Promise<Response>

/** Lets requests in flight finish, and refuses new ones, before the listener closes. */
export interface Drain {
  readonly isDraining: boolean
  /** Responds to a request with `respond`, or with a 503 once the drain has started. */
  run(method: string, respond: () => MaybePromise): MaybePromise
  /** Starts the drain. Resolves when the last request in flight is answered. */
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
    async run(method, respond) {
      // Nothing was done for this request, so another server can handle a retry.
      if (isDraining) {
        return fail(
          newCall(method),
          new Fault('unavailable', 'The server is stopping. Try again shortly.', {
            Connection: 'close',
          }),
        )
      }
      inFlight++
      try {
        return await respond()
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
