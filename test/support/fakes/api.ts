import type { BrowserContext, WebSocketRoute } from 'playwright-core'
import type { SignInOptions } from '../../../src/access/openid/schema.ts'
import { interceptApi, type Reply } from '../intercept.ts'
import { fakeAlarms } from './alarms.ts'
import { fakeChannels } from './channels.ts'
import { countEvents, findEvents, isSent } from './search.ts'
import { findThreadSeq } from './threads.ts'

export const PROJECT = 'prj_01kadz5p6vf2w8y3m4n5q6r7s8'

/** The answer of a fake server to one request; `retryAfter` becomes the header. */
interface FakeAnswer {
  status?: number
  data?: unknown
  code?: string
  error?: string
  message?: string
  details?: unknown[]
  retryAfter?: number
  /** Answers like this, in place of the rest: as a proxy in front of the server does. */
  raw?: Reply
}

type Handler = (body: any, url: URL) => FakeAnswer

export interface FakeEvent {
  title: string
  [field: string]: unknown
}

/** The server's /api as a page sees it, for states that are hard to reach with a real server. */
export interface FakeApi {
  /** Requests so far, as `METHOD /path`. */
  readonly requests: string[]
  /** Bodies of requests so far, by the same names. */
  readonly bodies: Map<string, any>
  /** Changes data before it is sent. */
  change(data: unknown): unknown
  /** Resolves when the next request may be answered: by default at once. */
  hold(): Promise<void>
  /** Answers `METHOD /path` from now on. */
  on(route: string, handler: Handler): void
  /** Returns the current handler of `METHOD /path`. */
  handler(route: string): Handler
  /** Adds events to the log, and sends them to followers. */
  emit(...events: FakeEvent[]): void
  /** Sends a message to all followers. */
  send(message: object): void
  /** Closes the open sockets. */
  cut(code?: number): Promise<void>
  /** True while new sockets are accepted. */
  isTaking: boolean
  /** The subscribe messages of all sockets so far. */
  readonly subscriptions: any[]
}

export const ACCOUNT = {
  person: { id: 'per_1', name: 'Ada Lovelace', email: 'ada@example.com', isOperator: true },
  isVerified: true,
  credentials: { hasPassword: true, passkeys: 0, hasSecondFactor: false, recoveryCodes: 0 },
  organizations: [
    {
      id: 'org_1',
      name: 'Analytical Engines',
      role: 'owner',
      needsSecondFactor: false,
      projects: [
        { id: PROJECT, name: 'Web shop', isSample: false },
        { id: 'prj_2', name: 'Newsletter', isSample: false },
      ],
    },
  ],
}

/** A project of the overview without events. */
const EMPTY_PROJECT = {
  id: PROJECT,
  name: 'Web shop',
  organization: { id: 'org_1', name: 'Analytical Engines' },
  ...{
    head: 0,
    unseen: 0,
    newest: [],
    firing: 0,
    acknowledged: 0,
    questions: 0,
    isSilenced: false,
    hours: [],
    unusual: [],
    failed: null,
    isComplete: true,
  },
}

/** Answers the requests of a context's pages; `isSignedIn` is the initial state of the session. */
export async function fakeApi(
  context: BrowserContext,
  { isSignedIn = true }: { isSignedIn?: boolean } = {},
): Promise<FakeApi> {
  let hasSession = isSignedIn
  const log: any[] = []
  const sockets = new Map<WebSocketRoute, Record<string, string> | undefined>()
  const handlers = new Map<string, Handler>()
  const signedOut = { status: 401, code: 'signed_out', error: 'Sign in first' }
  const signIn: Handler = () => {
    hasSession = true
    return { data: ACCOUNT }
  }
  const api: FakeApi = {
    requests: [],
    bodies: new Map(),
    subscriptions: [],
    isTaking: true,
    change: data => data,
    hold: () => Promise.resolve(),
    on: (route, handler) => void handlers.set(route, handler),
    handler: route => handlers.get(route)!,
    emit(...events) {
      for (const given of events) {
        const made = toEvent(given, log.length + 1)
        if (made.thread !== undefined) made.threadSeq = findThreadSeq(log, made)
        log.push(made)
        const event = api.change(made)
        const message = { type: 'event', project: PROJECT, seq: made.seq, event }
        for (const [socket, search] of sockets)
          if (search && isSent(made, search)) socket.send(JSON.stringify(message))
      }
    },
    send(message) {
      for (const socket of sockets.keys()) socket.send(JSON.stringify(message))
    },
    async cut(code = 1001) {
      const open = [...sockets.keys()]
      sockets.clear()
      for (const socket of open) await socket.close({ code, reason: 'as the test wants it' })
    },
  }

  api.on('GET /api/me', () => (hasSession ? { data: ACCOUNT } : signedOut))
  api.on('GET /api/overview', () => ({ data: { projects: [EMPTY_PROJECT], more: 0 } }))
  api.on('GET /api/sign-in', () => ({
    data: {
      hasOwner: true,
      isSignedIn: hasSession,
      hasPasswords: true,
      providers: [],
      proxyEmail: null,
      confirmation: null,
    } satisfies SignInOptions,
  }))
  api.on('GET /api/me/connections', () => ({ data: { items: [], providers: [] } }))
  api.on('GET /api/setup', () => ({ status: 404, code: 'not_found', error: 'Set up already' }))
  api.on('POST /api/session', signIn)
  api.on('POST /api/session/passkey/options', (_, { hostname: rpId }) => ({
    data: { challenge: 'Y2hhbGxlbmdl', rpId, timeout: 300_000, userVerification: 'required' },
  }))
  api.on('POST /api/setup', () => ({ ...signIn({}, new URL('http://a')), status: 201 }))
  api.on('DELETE /api/session', () => {
    hasSession = false
    return { data: {} }
  })
  api.on('PUT /api/projects/:id/read', () => ({ data: { seq: log.length } }))
  fakeChannels(api, log)
  fakeAlarms(api, log)
  api.on('GET /api/projects/:id/hooks', () => ({ data: { items: [] } }))
  api.on('POST /api/projects/:id/users/names', () => ({ data: { items: [] } }))
  api.on('POST /api/projects/:id/keys', () => ({ status: 201, data: { key: 'tdg_example' } }))
  api.on('GET /api/projects/:id/events', (_, url) => {
    const before = Number(url.searchParams.get('cursor') ?? Infinity)
    const found = findEvents(log, url).filter(({ seq }) => seq < before)
    const items = found.slice(0, Number(url.searchParams.get('limit')))
    const nextCursor = found.length > items.length ? String(items.at(-1).seq) : null
    return { data: { items, nextCursor } }
  })
  api.on('GET /api/projects/:id/histogram', (_, url) => ({ data: countEvents(log, url) }))
  const noEvent = { status: 404, code: 'not_found', error: 'No event has this id' }
  api.on('GET /api/events/:event/project', (_, url) =>
    log.some(({ id }) => id === url.pathname.split('/')[3]) ? { data: { id: PROJECT } } : noEvent,
  )
  api.on('GET /api/projects/:id/events/:event', (_, url) => {
    const event = log.find(({ id }) => url.pathname.endsWith(`/${id}`))
    return event ? { data: event } : noEvent
  })
  api.on('GET /api/projects/:id/events/:event/deliveries', () => ({
    data: { items: [], nextCursor: null, isDispatched: true },
  }))
  api.on('GET /api/projects/:id/events/:event/neighbours', (_, url) => {
    const at = log.findIndex(({ id }) => url.pathname.includes(`/${id}/`))
    const toPlace = (event: any) => (event ? { id: event.id, seq: event.seq } : null)
    return { data: { older: toPlace(log[at - 1]), newer: toPlace(log[at + 1]) } }
  })

  await interceptApi(context, async ({ method, url, body }) => {
    const path = url.pathname
      .replace(/^(\/api\/projects)\/[^/]+/, '$1/:id')
      .replace(/(\/channels)\/[^/]+/, '$1/:channel')
      .replace(/(\/events)\/[^/]+/, '$1/:event')
      .replace(/(\/users)\/(?!names$)[^/]+/, '$1/:user')
      .replace(/(\/keys)\/[^/]+/, '$1/:key')
      .replace(/(\/webhooks)\/[^/]+/, '$1/:webhook')
      .replace(/(\/silences)\/[^/]+/, '$1/:silence')
      .replace(/(\/heartbeats)\/[^/]+/, '$1/:heartbeat')
      .replace(/(\/hooks)\/[^/]+/, '$1/:hook')
      .replace(/(\/attempts)\/[^/]+/, '$1/:attempt')
      .replace(/(\/deliveries)\/[^/]+/, '$1/:delivery')
      .replace(/(\/insights)\/crd_[^/]+/, '$1/:card')
    const name = `${method} ${path}`
    api.requests.push(name)
    api.bodies.set(name, body)
    await api.hold()
    const handler = handlers.get(name)
    const came = handler ? handler(body, url) : { status: 404, error: `No ${name}` }
    return toAnswer({ ...came, data: api.change(came.data) })
  })
  await context.routeWebSocket('**/api/feed?account=*', socket => {
    if (!api.isTaking) return void socket.close({ code: 1001, reason: 'not now' })
    sockets.set(socket, undefined)
    socket.onClose(() => void sockets.delete(socket))
    socket.onMessage(text => {
      const { type, project, after, search } = JSON.parse(String(text))
      if (type === 'watch') {
        const message = { type: 'heads', heads: { [PROJECT]: log.length } }
        return void socket.send(JSON.stringify(message))
      }
      api.subscriptions.push(JSON.parse(String(text)))
      sockets.set(socket, search)
      const say = (message: object) => socket.send(JSON.stringify({ project, ...message }))
      say({ type: 'subscribed', head: log.length, recovered: true })
      for (const event of after === null ? [] : log.slice(after))
        if (isSent(event, search)) say({ type: 'event', seq: event.seq, event: api.change(event) })
    })
    const epoch = 'ab0c9e4e-8f2b-4b7a-9d35-2f6f4a1f7c10'
    socket.send(JSON.stringify({ type: 'hello', epoch, build: '' }))
  })
  return api
}

function toAnswer({ status = 200, data, retryAfter, raw, ...failure }: FakeAnswer): Reply {
  if (raw) return raw
  const requestId = '5f0c1c4e-8f2b-4b7a-9d35-2f6f4a1f7c10'
  const json =
    status < 400
      ? { success: true, data, requestId }
      : { success: false, error: 'Refused', requestId, ...failure }
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
    },
    body: JSON.stringify(json),
  }
}

function toEvent(event: FakeEvent, seq: number): any {
  const channelName = String(event['channelName'] ?? 'payments')
  const now = new Date().toISOString()
  return {
    id: `evt_${seq}`,
    seq,
    channelId: `chn_${channelName}`,
    userId: null,
    timestamp: now,
    createdAt: event['timestamp'] ?? now,
    description: null,
    icon: null,
    tags: [],
    metadata: {},
    source: 'api',
    notify: true,
    ...event,
    channelName,
  }
}
