import { Fault } from '../base/errors.ts'
import { fail, newCall, untilSent } from '../http/call.ts'

type MaybePromise = Response | Promise<Response>

/** Lets requests in flight finish, and refuses new ones, before the listener closes. */
export interface Drain {
  readonly isDraining: boolean
  /** Responds with `respond`, or with a 503 once requests that can be refused are. */
  run(respond: () => MaybePromise, request: { method: string; canRefuse: boolean }): MaybePromise
  /** Starts the drain: responses close their connections. Requests are still served. */
  start(): void
  /** Refuses new requests. Resolves when the last one in flight is answered, and its file sent. */
  refuse(): Promise<void>
}

export function createDrain(): Drain {
  const empty = Promise.withResolvers<void>()
  let inFlight = 0
  let isDraining = false
  let isRefusing = false
  const end = () => {
    inFlight--
    if (isRefusing && inFlight === 0) empty.resolve()
  }
  return {
    get isDraining() {
      return isDraining
    },
    async run(respond, { method, canRefuse }) {
      // Nothing was done for this request, so another server can handle a retry.
      if (isRefusing && canRefuse) {
        return fail(
          newCall(method),
          new Fault('unavailable', 'The server is stopping. Try again shortly.', {
            Connection: 'close',
          }),
        )
      }
      inFlight++
      let sent: Promise<void> | undefined
      try {
        const response = await respond()
        sent = untilSent(response)
        if (isDraining) response.headers.set('Connection', 'close')
        return response
      } finally {
        if (sent) void sent.then(end)
        else end()
      }
    },
    start: () => void (isDraining = true),
    refuse() {
      isDraining = isRefusing = true
      if (inFlight === 0) empty.resolve()
      return empty.promise
    },
  }
}
