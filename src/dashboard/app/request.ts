import type { Detail } from '../../http/envelope.ts'

/** Why a request came to nothing. */
export interface Failure {
  /** The code of the server, or how the request failed on the way. */
  code: string
  /** What happened and what to do, for people. */
  message: string
  /** The fields that are wrong, by path. */
  details: readonly Detail[]
  /** How long to wait before the next attempt, where the server says so. */
  retryAfterS: number | undefined
  /** Under which the server has logged it. */
  requestId: string | undefined
}

export type Result<Data> = { ok: true; data: Data } | { ok: false; failure: Failure }

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const DEADLINE_MS = 20_000
const UNREACHABLE =
  'The server cannot be reached. Check your connection; what you typed is still here.'
const NO_SENSE =
  'The answer makes no sense: something between here and the server, like a proxy, may be broken.'
const DEFAULT_WAIT_S = 30

let onSignedOut = () => {}

/** Says whom to tell when the server no longer knows the session. */
export function onSessionEnd(listener: () => void): void {
  onSignedOut = listener
}

/** Requests a path of /api. Never throws; `data` has the type that the server's schema gives it. */
export async function request<Data>(
  method: Method,
  path: `/api/${string}`,
  json?: object,
): Promise<Result<Data>> {
  let response: Response
  let text: string
  try {
    response = await fetch(path, {
      method,
      signal: AbortSignal.timeout(DEADLINE_MS),
      ...(json && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(json),
      }),
    })
    text = await response.text()
  } catch {
    return { ok: false, failure: toFailure({ code: 'unreachable', message: UNREACHABLE }) }
  }
  const body = parse(text)
  if (response.ok && body?.success === true) return { ok: true, data: body.data as Data }
  const failure = readFailure(response, body)
  if (failure.code === 'signed_out') onSignedOut()
  return { ok: false, failure }
}

export function toFailure(known: Pick<Failure, 'code' | 'message'> & Partial<Failure>): Failure {
  return { details: [], retryAfterS: undefined, requestId: undefined, ...known }
}

/** The part of the envelope that we read. */
interface Body {
  success?: unknown
  data?: unknown
  error?: string
  message?: string
  code?: string
  details?: Detail[]
  requestId?: string
}

function readFailure({ status, headers }: Response, body: Body | undefined): Failure {
  if (!body || typeof body.error !== 'string') {
    return toFailure({ code: 'no_sense', message: NO_SENSE })
  }
  const wait = Number(headers.get('retry-after') ?? DEFAULT_WAIT_S)
  return toFailure({
    code: body.code ?? (status === 429 ? 'rate_limited' : status === 400 ? 'invalid' : 'bug'),
    message: toMessage(status, body),
    details: Array.isArray(body.details) ? body.details : [],
    retryAfterS: status === 429 || status === 503 ? wait || DEFAULT_WAIT_S : undefined,
    requestId: body.requestId,
  })
}

function toMessage(status: number, { error = '', message, requestId }: Body): string {
  if (status === 400) return 'Some of this needs another look.'
  if (status === 500) return `The server made a mistake. Its log says more under ${requestId}.`
  return toSentence(message ?? error)
}

function toSentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

function parse(text: string): Body | undefined {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : undefined
  } catch {
    return undefined
  }
}
