import { Fault } from '../errors.ts'
import { toFailure } from '../http/failures.ts'
import { toResponse } from '../http/response.ts'
import type { Route } from '../http/route.ts'

/** Empties the routes before the listener closes: so a stop is seen as one, and cuts nobody off. */
export interface Drain {
  readonly isDraining: boolean
  /** The route, with its requests counted, and refused once the drain has begun. */
  cover(route: Route): Route
  /** Resolves when the last request inside is answered. */
  start(): Promise<void>
}

export function createDrain(): Drain {
  const empty = Promise.withResolvers<void>()
  let inside = 0
  let isDraining = false
  return {
    get isDraining() {
      return isDraining
    },
    cover: ({ method, path, respond }) => ({
      method,
      path,
      async respond(request) {
        if (isDraining) return refuse()
        inside++
        try {
          return await respond(request)
        } finally {
          inside--
          if (isDraining && inside === 0) empty.resolve()
        }
      },
    }),
    start() {
      isDraining = true
      if (inside === 0) empty.resolve()
      return empty.promise
    },
  }
}

/** Nothing of the request was done: the next server, or the next start, can have it. */
function refuse(): Response {
  const requestId = crypto.randomUUID()
  const fault = new Fault('unavailable', 'The server is stopping, try again shortly', {
    Connection: 'close',
  })
  return toResponse(toFailure(fault, requestId), requestId)
}
