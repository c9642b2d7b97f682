import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { Config } from '../base/config.ts'
import type { Listener } from '../base/listener.ts'
import { collectProcessMetrics, registry } from '../base/metrics.ts'
import { serve } from '../base/platform.ts'

const MAX_BYTES = 4 * 1024

/** Serves `GET /metrics` on a separate port, which can stay private, if `METRICS_PORT` is set. */
export function startMetrics(config: Config): Listener | undefined {
  const { metricsPort: port, metricsHost: host, metricsToken: token } = config
  if (port === undefined) return undefined
  collectProcessMetrics()
  const fetch = async (request: Request) => {
    const refusal = findRefusal(request, { host, token })
    if (refusal) return refusal
    return new Response(await registry.metrics(), {
      headers: { 'Content-Type': registry.contentType },
    })
  }
  return serve<never>({
    host,
    port,
    hostSetting: 'METRICS_HOST',
    portSetting: 'METRICS_PORT',
    maxBodyBytes: MAX_BYTES,
    maxFrameBytes: MAX_BYTES,
    maxBufferedBytes: MAX_BYTES,
    fetch,
    upgrade: fetch,
    open() {},
    message() {},
    close() {},
  })
}

/**
 * Returns the response to a request that may not read the metrics. Without a token, the Host header
 * must not be a foreign name: a web page could otherwise read them through DNS rebinding.
 */
function findRefusal(
  { url, method, headers }: Request,
  { host, token }: { host: string; token: string | undefined },
): Response | undefined {
  if (token !== undefined) {
    if (!isSame(headers.get('authorization') ?? '', `Bearer ${token}`)) {
      const challenge = { 'WWW-Authenticate': 'Bearer' }
      return new Response('Send METRICS_TOKEN as a bearer token', {
        status: 401,
        headers: challenge,
      })
    }
  } else if (!isOwnName(headers.get('host') ?? '', host)) {
    return new Response('Use the IP address, the name of METRICS_HOST, or set METRICS_TOKEN', {
      status: 421,
    })
  }
  if (new URL(url).pathname !== '/metrics') return new Response('Not found', { status: 404 })
  if (method === 'GET' || method === 'HEAD') return undefined
  return new Response('Method not allowed', { status: 405, headers: { Allow: 'GET, HEAD' } })
}

/** Compares in a time that depends on neither text. */
function isSame(one: string, other: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(one), hash(other))
}

/** Returns whether a Host header is an IP address, localhost, or the name to listen on. */
function isOwnName(header: string, host: string): boolean {
  const name = header.replace(/:\d+$/, '').toLowerCase()
  return (
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || ['localhost', host.toLowerCase()].includes(name)
  )
}
