import type { Detail } from './schema.ts'
import { parseJson } from './json.ts'
import type { ParseNumber } from './json.ts'
import { RateLimitError, TidingsError, UnauthorizedError, ValidationError } from './errors.ts'

/** The metadata of a successful response. */
export type ResponseInfo = {
  /** Identifies the request in the server's log. */
  requestId: string | undefined
  /**
   * True when the server repeated the response of an earlier request with the same Idempotency-Key.
   */
  replayed: boolean
}

/** Returns the data of a response, or the error that it reports. Accepts any body. */
export function parseResponse(
  response: Response,
  text: string,
  parseNumber?: ParseNumber,
): { data: unknown; info: ResponseInfo } | TidingsError {
  const { status, headers } = response
  const envelope = toEnvelope(text, parseNumber)
  const requestId = headers.get('x-request-id') ?? toText(envelope.requestId)
  if (response.ok && envelope.success === true) {
    const replayed = headers.get('x-idempotent-replay') === 'true'
    return { data: envelope.data, info: { requestId, replayed } }
  }

  const { details } = envelope
  const seconds = headers.get('retry-after') ?? ''
  const retryAfterMs = /^\d+$/.test(seconds) ? Number(seconds) * 1000 : undefined
  const failure = { status, code: toText(envelope.code), requestId, retryAfterMs }
  const message = toText(envelope.message) ?? toText(envelope.error) ?? toMessage(status)
  if (status === 400 && isDetails(details)) return new ValidationError(message, failure, details)
  if (status === 401) return new UnauthorizedError(message, failure)
  if (status === 429) return new RateLimitError(message, failure)
  return new TidingsError(message, failure)
}

function toEnvelope(text: string, parseNumber?: ParseNumber): Record<string, unknown> {
  try {
    return Object(parseJson(text, parseNumber))
  } catch {
    return {}
  }
}

function toText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function isDetails(value: unknown): value is Detail[] {
  return Array.isArray(value) && value.every(detail => Array.isArray(detail?.path))
}

function toMessage(status: number): string {
  // Browsers report an unfollowed redirect as status 0.
  if (status === 0 || (status >= 300 && status < 400)) {
    return 'The server redirects. Set baseUrl to the URL that it redirects to.'
  }
  return `HTTP ${status}, and the response body is not from Tidings`
}
