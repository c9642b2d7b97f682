import type { Detail } from '../../http/envelope.ts'
import { parseExact } from '../../http/exact-json.ts'
import { takeEarly } from './early-requests.ts'
import { isSafeSegment } from './paths.ts'
import type { Args, Data, Input, RouteName } from './routes.ts'

/** Why a request failed. */
export interface Failure {
  /** The error code of the server, or `unreachable`, `invalid_response` or `redirected`. */
  code: string
  /** A sentence for people: what happened, and what to do. */
  message: string
  /** The invalid fields, by path. */
  details: readonly Detail[]
  /** Seconds to wait before the next attempt, if the server sent them. */
  retryAfterS: number | undefined
}

export type Result<Data> = { ok: true; data: Data } | { ok: false; failure: Failure }

const DEADLINE_MS = 20_000
const UNREACHABLE = "Can't reach the server. Check your connection and try again."
const INVALID_RESPONSE =
  'The response cannot be read. A proxy in front of the server may be misconfigured.'
const REDIRECTED = 'A proxy in front of the server asks you to sign in. Reload the page.'
const INVALID_NAME = 'This ID cannot be part of a URL. Use POST /v1/identify to change it.'
const DEFAULT_WAIT_S = 30

let hear = (_: string) => {}

/** The account that this page shows. The server refuses requests once another one is signed in. */
export let accountId = ''

export function setAccountId(id: string): void {
  accountId = id
}

/** Calls `listener` with the code of each failure. */
export function onFailure(listener: (code: string) => void): void {
  hear = listener
}

/**
 * Sends a request to a route of /api. The fields of `input` that are not in its path are the query,
 * or the body. `signal` ends it. Never throws.
 */
export async function request<Name extends RouteName>(
  name: Name,
  ...rest: Args<Name> | [Input<Name>, AbortSignal | undefined]
): Promise<Result<Data<Name>>> {
  const [input, signal] = rest
  const [method, path, others] = toTarget(name, input)
  if (path === undefined)
    return { ok: false, failure: toFailure({ code: 'invalid_name', message: INVALID_NAME }) }
  const hasBody = method !== 'GET' && method !== 'DELETE'
  const deadline = AbortSignal.timeout(DEADLINE_MS)
  let response: Response
  let text: string
  try {
    const early = method === 'GET' ? await takeEarly(path) : undefined
    response =
      early ??
      (await fetch(path, {
        method,
        // The server never redirects these. The sign-in page of a proxy cannot be read.
        redirect: 'manual',
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        headers: {
          ...(accountId && { 'X-Account': accountId }),
          ...(hasBody && { 'Content-Type': 'application/json' }),
        },
        ...(hasBody && { body: JSON.stringify(others) }),
      }))
    text = await response.text()
  } catch {
    return { ok: false, failure: toFailure({ code: 'unreachable', message: UNREACHABLE }) }
  }
  const body = parse(text)
  if (response.ok && body?.success === true) return { ok: true, data: body.data as Data<Name> }
  const failure = readFailure(response, body)
  hear(failure.code)
  return { ok: false, failure }
}

/** The path of a GET route with its query. */
export function toUrl<Name extends RouteName & `GET ${string}`>(name: Name, input: Input<Name>) {
  return toTarget(name, input)[1] ?? ''
}

/**
 * The method, the path, which has the query of GET and DELETE, and the fields that are not in the
 * path. The path is undefined if browsers would resolve one of its parts to another path.
 */
function toTarget(name: RouteName, input: object = {}) {
  const [method = '', pattern = ''] = name.split(' ')
  const rest: Record<string, unknown> = { ...input }
  let isSafe = true
  const path = pattern.replace(/:(\w+)/g, (_, field: string) => {
    const value = String(rest[field])
    delete rest[field]
    isSafe &&= isSafeSegment(value)
    return encodeURIComponent(value)
  })
  const given = Object.entries(rest).filter(([, value]) => value !== undefined)
  const query = /GET|DELETE/.test(method) && given.length > 0
  const search = query ? `?${new URLSearchParams(given as [string, string][])}` : ''
  return [method, isSafe ? path + search : undefined, rest] as const
}

export function toFailure(known: Pick<Failure, 'code' | 'message'> & Partial<Failure>): Failure {
  return { details: [], retryAfterS: undefined, ...known }
}

/** The fields of the response envelope that are read. */
interface Body {
  success?: unknown
  data?: unknown
  error?: string
  message?: string
  code?: string
  details?: Detail[]
  requestId?: string
}

function readFailure({ status, headers, type }: Response, body: Body | undefined): Failure {
  if (!body || typeof body.error !== 'string') {
    if (type === 'opaqueredirect' || status === 401)
      return toFailure({ code: 'redirected', message: REDIRECTED })
    return toFailure({ code: 'invalid_response', message: INVALID_RESPONSE })
  }
  const wait = Number(headers.get('retry-after') ?? DEFAULT_WAIT_S)
  return toFailure({
    code: body.code ?? (status === 429 ? 'rate_limited' : status === 400 ? 'invalid' : 'bug'),
    message: toMessage(status, body),
    details: Array.isArray(body.details) ? body.details : [],
    retryAfterS: status === 429 || status === 503 ? wait || DEFAULT_WAIT_S : undefined,
  })
}

function toMessage(status: number, { error = '', message, requestId }: Body): string {
  if (status === 400) return 'Check the highlighted fields.'
  if (status === 500) return `The server failed. Look for request ID ${requestId} in its log.`
  return toSentence(message ?? error)
}

function toSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function parse(text: string): Body | undefined {
  try {
    const body = parseExact(text).value
    return typeof body === 'object' && body !== null ? body : undefined
  } catch {
    return undefined
  }
}
