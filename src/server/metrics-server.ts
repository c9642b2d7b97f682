import type { Listener } from '../listener.ts'
import { collectProcessMetrics, registry } from '../metrics.ts'
import { serve } from '../platform.ts'

const MAX_BYTES = 4 * 1024

/** Serves `GET /metrics` on a separate port, which can stay private. */
export function serveMetrics(host: string, port: number): Listener {
  collectProcessMetrics()
  const fetch = async (request: Request) => {
    if (new URL(request.url).pathname !== '/metrics')
      return new Response('Not found', { status: 404 })
    return new Response(await registry.metrics(), {
      headers: { 'Content-Type': registry.contentType },
    })
  }
  return serve<never>({
    host,
    port,
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
