import type { LookupAddress } from 'node:dns'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { CAN_REUSE_CONNECTIONS } from '../../base/platform.ts'
import type { CheckedUrl } from './guard.ts'
import { LOOKUP_FAILED } from './lookup.ts'
import { PROXY_FAILED, PROXY_REFUSED, type EgressProxy } from './proxy.ts'
import { createResponseParser } from './response-parser.ts'

const PROXY_AUTHENTICATION = 407
/** Names of the machine that resolves them. */
const LOCALHOST = /^(.*\.)?localhost\.?$/

/** The error of a connection that ended without one. */
const CLOSED = Object.assign(new Error('The connection was closed'), { code: 'ECONNRESET' })

/** Called with what arrives on a connection during one exchange. */
interface ConnectionListener {
  /** Called before the first byte is sent. Returns false if it must not be. */
  onReady(): boolean
  onData(bytes: Buffer): void
  /** Called when the connection has failed or was closed. */
  onClose(error: Error): void
}

/** A connection to one host. It carries one exchange at a time. */
export interface Connection {
  /** True if an earlier exchange used the connection. */
  readonly isReused: boolean
  /** Sends a request, and reports what follows to the listener. */
  send(request: string | Uint8Array, listener: ConnectionListener): void
  /** Keeps the connection for the next exchange with its host. */
  keep(): void
  destroy(): void
}

export interface DialOptions {
  /** Returns addresses that are checked. */
  lookup: LookupFunction
  /** Certificate authorities to trust instead of those of the system. */
  ca: string | undefined
  /** The proxy through which connections are made. */
  proxy: EgressProxy | undefined
}

interface ConnectionOptions extends DialOptions {
  /** Called when an exchange has ended, and another one can use the connection. */
  onIdle(connection: Connection): void
  onClosed(connection: Connection): void
}

/** Opens a connection to a target, directly or through a proxy. */
export function openConnection(target: CheckedUrl, options: ConnectionOptions): Connection {
  const { lookup, proxy, onIdle, onClosed } = options
  let socket: Socket | undefined
  let tunnel: Socket | undefined
  let isReady = false
  let isReused = false
  let isOpen = true
  let waiting: string | Uint8Array | undefined
  let listener: ConnectionListener | undefined

  function close(error: Error): void {
    if (!isOpen) return
    isOpen = false
    const before = listener
    listener = undefined
    onClosed(connection)
    socket?.destroy()
    tunnel?.destroy()
    before?.onClose(error)
  }

  function ready(): void {
    isReady = true
    if (waiting !== undefined && listener?.onReady()) socket?.write(waiting)
    waiting = undefined
  }

  function use(next: Socket): void {
    socket = next
    next.on('data', (bytes: Buffer) => {
      if (listener) listener.onData(bytes)
      // Nobody asked for these bytes. They must not become the response to the next request.
      else close(CLOSED)
    })
    next.on('error', close)
    next.on('end', () => close(CLOSED))
    next.on('close', () => close(CLOSED))
    if (target.isSecure) next.on('secureConnect', ready)
    else if (next.connecting) next.on('connect', ready)
    else ready()
  }

  /** Asks a proxy for a tunnel to the target, and uses it. */
  async function useTunnel(through: EgressProxy): Promise<void> {
    const host = await findDestination(target, through, lookup)
    if (!isOpen) return
    const opened = connectTcp({ host: through.host, port: through.port, noDelay: true })
    tunnel = opened
    const answer = createResponseParser(0)
    const fail = (code: string) => close(Object.assign(new Error(code), { code }))
    const onFailure = () => fail(PROXY_FAILED)
    const onData = (bytes: Buffer) => {
      const state = answer.push(bytes)
      const status = answer.head?.status
      if (status === undefined) return state === 'head' ? undefined : onFailure()
      if (status === PROXY_AUTHENTICATION) return onFailure()
      if (status < 200 || status > 299) return fail(PROXY_REFUSED)
      opened.off('data', onData).off('error', onFailure)
      opened.off('end', onFailure).off('close', onFailure)
      opened.on('error', close)
      use(dial(target, options, opened))
    }
    opened.on('data', onData).on('error', onFailure).on('end', onFailure).on('close', onFailure)
    opened.write(through.toRequest(host, target.port))
  }

  const connection: Connection = {
    get isReused() {
      return isReused
    },
    send(request, nextListener) {
      listener = nextListener
      // Nothing is sent before the certificate is verified.
      waiting = request
      if (isReady) ready()
    },
    keep() {
      listener = undefined
      isReused = true
      // A part of the request that is still unsent would precede the next request.
      const isUnsent = !socket || socket.writableLength > 0
      if (!CAN_REUSE_CONNECTIONS || isUnsent || !isOpen) close(CLOSED)
      else onIdle(connection)
    },
    destroy() {
      listener = undefined
      close(CLOSED)
    },
  }
  if (proxy?.isFor(target.host, target.port)) useTunnel(proxy).catch(close)
  else use(dial(target, options))
  return connection
}

/** Connects to a target, or begins TLS in a tunnel to it. */
function dial(
  { host, port, isSecure }: CheckedUrl,
  { lookup, ca }: DialOptions,
  tunnel?: Socket,
): Socket {
  const address = { host, port, lookup, noDelay: true }
  if (!isSecure) return tunnel ?? connectTcp(address)
  return connectTls({
    ...address,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    ...(tunnel && { socket: tunnel }),
    ...(ca !== undefined && { ca }),
    ...(isIP(host) === 0 && { servername: host.replace(/\.$/, '') }),
  })
}

/**
 * Returns the host that a proxy is asked for: an address that was checked, so that the proxy
 * connects to no other one. A proxy that resolves names gets the name.
 */
async function findDestination(
  { host }: CheckedUrl,
  { resolvesNames }: EgressProxy,
  lookup: LookupFunction,
) {
  if (isIP(host) !== 0) return host
  if (resolvesNames) {
    if (LOCALHOST.test(host)) throw Object.assign(new Error(), { code: LOOKUP_FAILED })
    return host
  }
  const found = await new Promise<LookupAddress[]>((resolve, reject) => {
    lookup(host, { all: true }, (error, addresses) => {
      if (error) reject(error)
      else resolve(addresses as LookupAddress[])
    })
  })
  // A proxy of an IPv4 network cannot connect to IPv6.
  return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? ''
}
