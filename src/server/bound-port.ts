import type { Config } from '../config.ts'
import { withTimeout } from '../functions.ts'
import { Fault } from '../errors.ts'
import { FEED_PATH, type SocketSession } from '../feed/socket-guard.ts'
import { fail, newCall } from '../http/call.ts'
import { toClientAddress } from '../http/client-address.ts'
import { toSite, type Site } from '../http/site.ts'
import { toPathname } from '../http/url.ts'
import { serve } from '../platform.ts'
import type { Listener, ServeOptions } from '../listener.ts'
import { createDrain, type Drain } from './drain.ts'

/** Far above our own limit, which answers with our envelope. Bun buffers no body that nobody reads. */
const PLATFORM_BODY_BYTES = 2 ** 40
const MAX_FRAME_BYTES = 4 * 1024
const MAX_BUFFERED_BYTES = 1024 * 1024
/** How long a request waits for a server that starts. */
const START_MS = 5_000

/** The application behind the port: it answers requests and handshakes. */
interface Application {
  fetch(request: Request): Response | Promise<Response>
  feed: Pick<ServeOptions<SocketSession>, 'open' | 'message' | 'close'> & {
    upgrade(request: Request): ReturnType<ServeOptions<SocketSession>['upgrade']>
  }
}

/** The bound port, before and after there is something to answer with. */
export interface BoundPort {
  listener: Listener
  drain: Drain
  /** The address of the server: `BASE_URL`, or localhost with the port that was bound. */
  site: Site
  /** The address of the client. */
  toAddress(request: Request): string
  /** Hands requests on, also those that came before. */
  attach(back: Application): void
}

/** Binds the port. Throws with a sentence for people when it cannot be had. */
export function bindPort(config: Config, isShared: boolean | undefined): BoundPort {
  let back: Application | undefined
  const opened = Promise.withResolvers<void>()
  const drain = createDrain()
  const peers = new WeakMap<Request, () => string>()

  function fetch(request: Request, peer: () => string): Response | Promise<Response> {
    if (!back) {
      // Processes that share the port get a part of the requests as soon as they are bound.
      const answered = opened.promise.then(() => fetch(request, peer))
      return withTimeout(START_MS, answered, refuseStart)
    }
    const { fetch: answer } = back
    peers.set(request, peer)
    return isWork(toPathname(request.url)) ? drain.run(() => answer(request)) : answer(request)
  }

  const listener = serve<SocketSession>({
    host: config.host,
    port: config.port,
    isShared,
    maxBodyBytes: PLATFORM_BODY_BYTES,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxBufferedBytes: MAX_BUFFERED_BYTES,
    fetch,
    // Paths without sockets answer a handshake like any request.
    upgrade(request, peer): ReturnType<ServeOptions<SocketSession>['upgrade']> {
      if (toPathname(request.url) !== FEED_PATH) return fetch(request, peer)
      if (!back) return refuseStart()
      peers.set(request, peer)
      return back.feed.upgrade(request)
    },
    open: socket => back?.feed.open(socket),
    message: (socket, text) => back?.feed.message(socket, text),
    close: (socket, code) => back?.feed.close(socket, code),
  })
  return {
    listener,
    drain,
    site: toSite(config.baseUrl ?? `http://localhost:${listener.port}`),
    toAddress: request =>
      toClientAddress(
        peers.get(request)?.() ?? '',
        request.headers.get('x-forwarded-for'),
        config.trustedProxies,
      ),
    attach(next) {
      back = next
      opened.resolve()
    },
  }
}

function refuseStart(): Response {
  return fail(newCall(), new Fault('unavailable', 'The server is starting'))
}

/** Whether a drain waits for, and then refuses, what is asked at `pathname`: health and pages stay open. */
function isWork(pathname: string): boolean {
  return pathname.startsWith('/v1/') || pathname.startsWith('/api/')
}
