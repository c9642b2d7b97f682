import type { Detail } from '../http/envelope.ts'
import { RateLimitError, TidingsError, UnauthorizedError, ValidationError } from './errors.ts'

/** What came with the data: the request's name in the server's log, and whether the effect is an earlier request's. */
export type Answer = { requestId: string | undefined; replayed: boolean }

/** Takes the data out of an answer, or says what it tells of a failure, whatever its body is. */
export function toOutcome(
  response: Response,
  text: string,
): { data: unknown; answer: Answer } | TidingsError {
  const { status, headers } = response
  const envelope = toEnvelope(text)
  const requestId = headers.get('x-request-id') ?? toText(envelope.requestId)
  if (response.ok && envelope.success === true) {
    const replayed = headers.get('x-idempotent-replay') === 'true'
    return { data: envelope.data, answer: { requestId, replayed } }
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

function toEnvelope(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
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
  // A browser shows a redirect that it may not follow as status 0.
  if (status === 0 || (status >= 300 && status < 400)) {
    return 'The server redirects: baseUrl must be the address that it redirects to'
  }
  return `HTTP ${status} without an answer of Tidings in its body`
}
