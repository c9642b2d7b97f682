import { scaled } from '../until.ts'
import { openRaw, toRequest, type RawAnswer, type RawConnection } from './raw-http.ts'

/**
 * A kept connection to one server. Unlike `fetch`, it never repeats a request on a lost connection.
 */
export interface HttpClient {
  /**
   * One request at a time. Throws if the connection ends before the whole answer, or after 30 s.
   */
  request(method: string, path: string, options?: HttpOptions): Promise<RawAnswer>
  close(): void
}

interface HttpOptions {
  headers?: Record<string, string>
  body?: string
}

const TIMEOUT_MS = scaled(30_000)

/** Returns a client for `url`; it reconnects once the last connection has ended. */
export function createHttpClient(url: string): HttpClient {
  const { host } = new URL(url)
  let kept: RawConnection | undefined

  function open(): RawConnection {
    if (kept) return kept
    const fresh = openRaw(url)
    kept = fresh
    void fresh.closed.then(() => {
      if (kept === fresh) kept = undefined
    })
    return fresh
  }

  function close(): void {
    kept?.[Symbol.dispose]()
    kept = undefined
  }

  return {
    async request(method, path, { headers = {}, body = '' } = {}) {
      const connection = open()
      const all = { Host: host, 'Content-Length': String(Buffer.byteLength(body)), ...headers }
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
      connection.write(toRequest(`${method} ${path} HTTP/1.1`, lines, body))
      const timer = setTimeout(close, TIMEOUT_MS)
      const answer = await connection.answer()
      clearTimeout(timer)
      if (!answer) {
        close()
        throw new Error('the connection ended')
      }
      if (answer.headers.get('connection')?.toLowerCase() === 'close') close()
      return answer
    },
    close,
  }
}
