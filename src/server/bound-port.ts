import ipaddr from 'ipaddr.js'
import type { Config } from '../base/config.ts'
import { parseEmail } from '../base/config/values.ts'
import { once, withTimeout } from '../base/functions.ts'
import { Fault } from '../base/errors.ts'
import { FEED_PATH, type SocketSession } from '../log/feed/socket-guard.ts'
import { fail, newCall } from '../http/call.ts'
import { createClientAddressReader, createNetworkCheck } from '../http/client-address.ts'
import { toSite, type Site } from '../http/site.ts'
import { isForPrograms, toPathname } from '../http/url.ts'
import { serve } from '../base/platform.ts'
import type { Listener, ServeOptions } from '../base/listener.ts'
import { logger } from '../base/log.ts'
import { createDrain, type Drain } from './drain.ts'

const log = logger('server')
/**
 * Far above the limit of the application, whose errors have an envelope. Unread bodies use no
 * memory.
 */
const PLATFORM_BODY_BYTES = 2 ** 40
const MAX_FRAME_BYTES = 4 * 1024
const MAX_BUFFERED_BYTES = 1024 * 1024
/** How long a request waits for a starting server. */
const START_MS = 5_000

const NO_UPGRADE =
  'The live feed takes WebSockets only. A proxy must pass the headers Upgrade and Connection.'

/** The application behind the port. It responds to requests and WebSocket handshakes. */
interface Application {
  fetch(request: Request): Response | Promise<Response>
  feed: Pick<ServeOptions<SocketSession>, 'open' | 'message' | 'close'> & {
    upgrade(request: Request): ReturnType<ServeOptions<SocketSession>['upgrade']>
  }
}

/** A port with an application. Requests wait until the application is attached. */
export interface BoundPort {
  listener: Listener
  drain: Drain
  /** The URL of the server: `BASE_URL`, or localhost with the bound port. */
  site: Site
  /** Returns the IP address of the client. */
  toAddress(request: Request): string
  /**
   * Returns the e-mail address in the header AUTH_PROXY_HEADER, in the form of `parseEmail`.
   * Undefined unless a trusted proxy has sent the request, with exactly one address.
   */
  findProxyEmail(request: Request): string | undefined
  /** Passes all requests to the application, including those that are waiting. */
  attach(application: Application): void
}

/**
 * Binds the port. A port that other processes share is bound by `attach` instead. Both throw an
 * error that says what to do when the port is not available.
 */
export function bindPort(config: Config, isShared: boolean | undefined): BoundPort {
  let application: Application | undefined
  const attached = Promise.withResolvers<void>()
  const drain = createDrain()
  const peers = new WeakMap<Request, () => string>()
  const readClientAddress = createClientAddressReader({
    trusted: config.trustedProxies,
    onUntrusted: createProxyWarning(config.trustedProxies),
  })

  function fetch(request: Request, peer: () => string): Response | Promise<Response> {
    if (!application) {
      // A request that is refused is not done later. The client sends it again.
      const isReady = attached.promise.then(() => true)
      return withTimeout(START_MS, isReady, () => false).then(ready =>
        ready ? fetch(request, peer) : refuseStart(request),
      )
    }
    const { fetch: respond } = application
    peers.set(request, peer)
    const { method, url } = request
    const pathname = toPathname(url)
    if (pathname === FEED_PATH) {
      // Proxies remove only headers for one hop: Upgrade and Connection.
      if (request.headers.has('sec-websocket-key')) warnOfUpgrade()
      return fail(newCall(method), new Fault('not_found', NO_UPGRADE))
    }
    // Health checks and pages stay available. Messages in the form of ntfy can go to the root.
    const canRefuse =
      isForPrograms(pathname) || (pathname === '/' && ['POST', 'PUT'].includes(method))
    return drain.run(() => respond(request), { method, canRefuse })
  }

  const isProxy = createNetworkCheck(config.trustedProxies)
  const listen = () =>
    serve<SocketSession>({
      host: config.host,
      port: config.port,
      isShared,
      maxBodyBytes: PLATFORM_BODY_BYTES,
      maxFrameBytes: MAX_FRAME_BYTES,
      maxBufferedBytes: MAX_BUFFERED_BYTES,
      fetch,
      // Other paths respond to a handshake as to any request.
      upgrade(request, peer): ReturnType<ServeOptions<SocketSession>['upgrade']> {
        if (toPathname(request.url) !== FEED_PATH) return fetch(request, peer)
        if (!application) return refuseStart(request)
        peers.set(request, peer)
        return application.feed.upgrade(request)
      },
      open: socket => application?.feed.open(socket),
      message: (socket, text) => application?.feed.message(socket, text),
      close: (socket, code) => application?.feed.close(socket, code),
    })
  // The other processes on a shared port respond while this one starts.
  let listener = isShared ? undefined : listen()
  const port = listener?.port ?? config.port
  return {
    listener: {
      port,
      publish: (topic, text) => listener?.publish(topic, text),
      stop: async () => listener?.stop(),
    },
    drain,
    site: toSite(config.baseUrl ?? `http://localhost:${port}`),
    toAddress: request =>
      readClientAddress(peers.get(request)?.() ?? '', request.headers.get('x-forwarded-for')),
    findProxyEmail(request) {
      const { authProxyHeader } = config
      const isProxied = isProxy(peers.get(request)?.() ?? '')
      if (authProxyHeader === undefined || !isProxied) return undefined
      const value = request.headers.get(authProxyHeader) ?? ''
      // Repeated headers arrive joined by commas. The second one may be the client's own.
      return value.includes(',') ? undefined : parseEmail(value)
    },
    attach(next) {
      application = next
      attached.resolve()
      listener ??= listen()
    },
  }
}

function refuseStart({ method }: Request): Response {
  return fail(
    newCall(method),
    new Fault('unavailable', 'The server is starting. Try again shortly.'),
  )
}

/**
 * Returns a function to call when a peer sends X-Forwarded-For and is no trusted proxy. Its first
 * call for a possible proxy logs which setting is missing.
 */
function createProxyWarning(trusted: readonly string[]): (peer: string) => void {
  let hasWarned = false
  return peer => {
    const setting = hasWarned ? undefined : suggestTrustedProxies(trusted, peer)
    if (setting === undefined) return
    hasWarned = true
    log.warning(
      'A request from {peer} has the header X-Forwarded-For, which is ignored. If {peer} is your proxy, set TRUSTED_PROXIES to {setting}. Until then, all clients behind it have one address, and delay each other at sign-in.',
      { peer, setting },
    )
  }
}

/** Logs once that a proxy has removed the headers of a handshake. */
const warnOfUpgrade = once(() =>
  log.warning(
    'A WebSocket handshake has arrived without the header Upgrade. If the server is behind a proxy, let it pass the headers Upgrade and Connection. Until then, the dashboard asks for new events again and again.',
  ),
)

/**
 * Returns the value of TRUSTED_PROXIES that includes a peer. Undefined if the peer is probably no
 * proxy: with trusted proxies set, any client at a public address can send the header.
 */
export function suggestTrustedProxies(
  trusted: readonly string[],
  peer: string,
): string | undefined {
  if (!ipaddr.isValid(peer)) return undefined
  const address = ipaddr.process(peer)
  if (trusted.length > 0 && address.range() === 'unicast') return undefined
  return [...trusted, address.toString()].join(',')
}
