import { Fault } from '../errors.ts'
import { withTimeout } from '../functions.ts'
import { isRawNumber, parseExact, toNumber } from './exact-json.ts'
import { findTextProblem, NO_ISSUES, type Issue } from './rules.ts'
import { InvalidRequest } from './validation.ts'

const MAX_BODY_BYTES = 256 * 1024
const MAX_DEPTH = 64
const MAX_ISSUES = 20
const utf8 = new TextDecoder('utf-8', { fatal: true })

const JSON_TYPE = /^\s*application\/json\s*(;|$)/i
const JSON_OR_NO_TYPE = /^\s*(application\/json|)\s*(;|$)/i
const TEXT_TYPE = /^\s*(text\/plain|application\/x-www-form-urlencoded|)\s*(;|$)/i
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i

export interface BodyLimits {
  /** How long a body may take to arrive. */
  timeoutMs: number
}

/** A JSON object, and what is wrong with its texts wherever they are. */
export interface JsonBody {
  value: object
  issues: readonly Issue[]
}

/**
 * Reads the JSON object in a request's body. Without `isTypeRequired`, a body without a Content-Type is JSON; browsers
 * send such a body to other sites without asking them. Throws `Fault` (408, 413, 415) or `Invalid` (400).
 */
export async function readJson(
  request: Request,
  limits: BodyLimits & { isTypeRequired?: boolean },
): Promise<JsonBody> {
  checkType(request, limits.isTypeRequired ? JSON_TYPE : JSON_OR_NO_TYPE, 'application/json')
  const text = decode(await readBytes(request, limits))
  const value = parseJson(text)
  // Only an escape can bring U+0000 or half of a surrogate pair into valid UTF-8.
  return { value, issues: text.includes('\\u') ? findBadTexts(value) : NO_ISSUES }
}

/** The text in a request's body. Throws like `readJson`. */
export async function readText(request: Request, limits: BodyLimits): Promise<string> {
  checkType(request, TEXT_TYPE, 'text/plain')
  const text = decode(await readBytes(request, limits))
  const bad = findTextProblem(text)
  if (bad) throw invalid('invalid_encoding', bad)
  return text
}

function checkType(request: Request, accepted: RegExp, name: string): void {
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    throw new Fault('unsupported_media_type', 'Send the body without a Content-Encoding')
  }
  const type = request.headers.get('content-type') ?? ''
  const charset = CHARSET.exec(type)?.[1]?.toLowerCase()
  if (!accepted.test(type) || (charset !== undefined && !/^utf-?8$/.test(charset))) {
    throw new Fault('unsupported_media_type', `Send the body as ${name} in UTF-8`)
  }
}

async function readBytes(request: Request, { timeoutMs }: BodyLimits): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > MAX_BODY_BYTES) throw tooLarge()
  try {
    const bytes = declared === null ? collect(request) : request.arrayBuffer()
    const arrived = await withTimeout<Uint8Array<ArrayBuffer> | ArrayBuffer, never>(
      timeoutMs,
      bytes,
      () => {
        throw notArrived('in time')
      },
    )
    return new Uint8Array(arrived)
  } catch (error) {
    throw error instanceof Fault ? error : notArrived('whole')
  }
}

function notArrived(how: string): Fault {
  return new Fault('request_timeout', `The body did not arrive ${how}`, { Connection: 'close' })
}

/** Reads a body of unknown length, no further than the limit. */
async function collect(request: Request): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw tooLarge()
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

function tooLarge(): Fault {
  return new Fault('payload_too_large', `The body must be at most ${MAX_BODY_BYTES / 1024} KiB`)
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw invalid('invalid_encoding', 'The body is not valid UTF-8')
  }
}

/** Numbers below the body's own fields keep their spelling; those in the fields themselves are ordinary numbers. */
function parseJson(text: string): object {
  checkDepth(text)
  let value: unknown
  try {
    value = parseExact(text)
  } catch {
    throw invalid(
      'invalid_json',
      text.trim() === '' ? 'The body is empty' : 'The body is not valid JSON',
    )
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) {
    throw invalid('invalid_type', 'The body must be a JSON object')
  }
  const fields = value as Record<string, unknown>
  for (const [name, field] of Object.entries(fields)) {
    if (isRawNumber(field)) fields[name] = toNumber(field)
  }
  return value
}

/** Deep nesting is cheap to send and dear to parse, walk and store: it is counted in the text. */
function checkDepth(text: string): void {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (inString) {
      if (unit === 0x5c) index++
      else if (unit === 0x22) inString = false
    } else if (unit === 0x22) inString = true
    else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > MAX_DEPTH)
        throw invalid('too_deep', `The body must be at most ${MAX_DEPTH} levels deep`)
    } else if (unit === 0x7d || unit === 0x5d) depth--
  }
}

function findBadTexts(body: object): Issue[] {
  const issues: Issue[] = []
  const visit = (value: unknown, path: string[]): void => {
    if (issues.length >= MAX_ISSUES) return
    if (typeof value === 'string') report(value, path)
    else if (Array.isArray(value))
      value.forEach((item, index) => visit(item, [...path, String(index)]))
    else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        report(key, [...path, key])
        visit(item, [...path, key])
      }
    }
  }
  const report = (text: string, path: string[]): void => {
    const bad = findTextProblem(text)
    if (bad) issues.push({ path, code: 'invalid_encoding', message: bad })
  }
  visit(body, [])
  return issues
}

function invalid(code: Issue['code'], message: string): InvalidRequest {
  return new InvalidRequest([{ path: [], code, message }])
}
