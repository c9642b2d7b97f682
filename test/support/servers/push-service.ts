import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { createAuthority } from '../certificates.ts'
import {
  decryptPush,
  newBrowserKeys,
  verifyVapid,
  type BrowserKeys,
  type Claims,
} from '../clients/push-crypto.ts'
import { until } from '../until.ts'
import { listen } from '../loopback.ts'
import { findHeaderProblem } from '../request-head.ts'

/** A push as it arrived, decrypted. */
export interface Arrived {
  path: string
  ttl: number
  urgency: string
  topic: string
  authorization: string
  claims: Claims
  /** The public key that signed it. */
  key: string
  bytes: number
  records: number
  text: string
  notification: {
    title: string
    body?: string
    navigate: string
    tag: string
    data?: { seq?: number }
    silent?: boolean
    renotify?: boolean
  }
}

/** The subscription that a browser gives its page. */
export interface TestBrowser {
  endpoint: string
  path: string
  keys: { p256dh: string; auth: string }
}

export interface ScriptedAnswer {
  status: number
  headers?: Record<string, string>
  body?: string
}

export interface PushService extends AsyncDisposable {
  /** The host with its port. */
  host: string
  ca: string
  /** Pushes that were accepted or answered by script, in order of arrival. */
  arrived: Arrived[]
  /** Violations of RFC 8030, 8188, 8291, 8292, 9110 or 9112; each was answered 400. */
  problems: string[]
  /** Subscribes a browser. */
  subscribe(): TestBrowser
  /** Sets the answers for a subscription; the last one repeats. */
  script(browser: TestBrowser, ...answers: ScriptedAnswer[]): void
  /** Returns the pushes for a browser. */
  of(browser: TestBrowser): Arrived[]
  until(browser: TestBrowser, count: number): Promise<Arrived[]>
}

/** A push service on loopback that knows its browsers' keys. */
export async function startPushService(): Promise<PushService> {
  const authority = createAuthority()
  const browsers = new Map<string, BrowserKeys>()
  const scripts = new Map<string, ScriptedAnswer[]>()
  const arrived: Arrived[] = []
  const problems: string[] = []

  const server = createServer(authority.issue(['127.0.0.1']), (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const path = request.url ?? ''
      try {
        arrived.push(read(request, Buffer.concat(chunks), browsers.get(path), host))
      } catch (error) {
        problems.push(String(error))
        response.writeHead(400).end(String(error))
        return
      }
      const answers = scripts.get(path) ?? [{ status: 201, headers: { Location: '/m/1' } }]
      const next = (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 201 }
      response.writeHead(next.status, next.headers).end(next.body ?? '')
    })
  })
  const port = await listen(server)
  const host = `127.0.0.1:${port}`
  const of = ({ path }: TestBrowser) => arrived.filter(one => one.path === path)

  return {
    host,
    ca: authority.ca,
    arrived,
    problems,
    subscribe() {
      const keys = newBrowserKeys()
      const path = `/push/${randomBytes(24).toString('base64url')}`
      browsers.set(path, keys)
      return {
        endpoint: `https://${host}${path}`,
        path,
        keys: { p256dh: keys.publicKey, auth: keys.auth },
      }
    },
    script: ({ path }, ...answers) => void scripts.set(path, answers),
    of,
    async until(browser, count) {
      await until(() => of(browser).length >= count)
      return of(browser)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Decodes a push by the standards; throws at the first violation. */
function read(
  { method, headers, rawHeaders, url = '' }: IncomingMessage,
  body: Buffer,
  keys: BrowserKeys | undefined,
  host: string,
): Arrived {
  const must = (isTrue: boolean, rule: string) => {
    if (!isTrue) throw new Error(rule)
  }
  const problem = findHeaderProblem(rawHeaders)
  if (problem !== undefined) throw new Error(problem)
  if (!keys) throw new Error(`No browser has subscribed at ${url}`)
  const header = (name: string) => String(headers[name] ?? '')
  must(method === 'POST', 'RFC 8030 §5: POST')
  must(/^\d+$/.test(header('ttl')), 'RFC 8030 §5.2: TTL')
  must(/^(very-low|low|normal|high)$/.test(header('urgency')), 'RFC 8030 §5.3: Urgency')
  // Apple's service refuses `_`.
  must(/^[A-Za-z0-9-]{1,32}$/.test(header('topic')), 'RFC 8030 §5.4: Topic')
  must(header('content-encoding') === 'aes128gcm', 'RFC 8291 §4: aes128gcm')
  must(body.length <= 4096, 'RFC 8030 §7.2: 4096 bytes')
  const { claims, key } = verifyVapid(header('authorization'))
  must(claims.aud === `https://${host}`, 'RFC 8292 §2: aud')
  const leftS = claims.exp - Date.now() / 1000
  must(leftS > 0 && leftS <= 86_400, 'RFC 8292 §2: exp')
  must(/^(mailto:.+@.+\..+|https:\/\/.+)/.test(claims.sub), 'RFC 8292 §2.1: sub')
  const { text, records } = decryptPush(body, keys)
  must(records === 1, 'RFC 8291 §4: one record')
  const message = JSON.parse(text) as { web_push: number; notification: Arrived['notification'] }
  must(message.web_push === 8030, 'Declarative Web Push: web_push')
  return {
    path: url,
    ttl: Number(header('ttl')),
    urgency: header('urgency'),
    topic: header('topic'),
    authorization: header('authorization'),
    claims,
    key,
    bytes: Buffer.byteLength(text),
    records,
    text,
    notification: message.notification,
  }
}
