import { Fault } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'
import { createSemaphore, tooManyAtOnce } from '../base/semaphore.ts'
import { isRawNumber, parseExact, toNumber } from './exact-json.ts'
import { explainJson } from './json-error.ts'
import { findTextProblem, NO_ISSUES, type Issue } from './rules.ts'
import { invalidField, InvalidRequest } from './validation.ts'

const MAX_BODY_BYTES = 256 * 1024
const LARGE_BYTES = 32 * 1024
/** A stranger's body is large from here on. No page sends such a body without a session. */
export const LARGE_BYTES_OF_STRANGER = 4 * 1024
/** The share of all strangers. No caller has this name. */
export const STRANGERS = ''
/** The pause after a large body, in the time that its parsing took. */
const PAUSES_PER_PARSE = 2
const MAX_DEPTH = 64
const MAX_ISSUES = 20
const largeBodies = createSemaphore({ total: 1 })
const utf8 = new TextDecoder('utf-8', { fatal: true })

const JSON_TYPE = /^\s*application\/json\s*(;|$)/i
const JSON_OR_NO_TYPE = /^\s*(application\/json|)\s*(;|$)/i
const TEXT_TYPE = /^\s*(text\/plain|application\/x-www-form-urlencoded|)\s*(;|$)/i
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i

export interface BodyLimits {
  /** Milliseconds within which a body must arrive. */
  timeoutMs: number
}

export interface BodyOptions extends BodyLimits {
  /**
   * The caller whose large bodies wait for one another. Undefined for a stranger, who may send at
   * most 32 KiB, and whose large bodies wait for those of all strangers.
   */
  caller: string | undefined
  /** True if a body without a Content-Type is refused. */
  isTypeRequired?: boolean
  /** True for programs made for another server: the Content-Type and the query may be any. */
  isForeign?: boolean
  /** The most bytes that a body may have; by default 256 KiB, or 32 KiB for a stranger. */
  maxBytes?: number
  /** Called with the bytes of the body when it has arrived. */
  onArrived?(bytes: number): void
}

/** A JSON object, and the issues with strings at any depth of it. */
export interface JsonBody {
  value: object
  issues: readonly Issue[]
}

/**
 * Reads the JSON object in a request's body. A body without a Content-Type counts as JSON unless
 * `isTypeRequired`: browsers send such a body across sites without a preflight request. Throws
 * `Fault` (408, 413, 415, and 503 if the client leaves) or `InvalidRequest` (400).
 */
export async function readJson(request: Request, options: BodyOptions): Promise<JsonBody> {
  const accepted = options.isTypeRequired ? JSON_TYPE : JSON_OR_NO_TYPE
  if (!options.isForeign) checkType(request, accepted, 'application/json')
  const { caller = STRANGERS } = options
  return parseJson(await readBytes(request, options), caller, request.signal)
}

/** Parses a JSON object of a caller. Throws `unavailable` or `InvalidRequest`. */
export async function parseJson(
  bytes: Uint8Array,
  caller: string,
  signal: AbortSignal,
): Promise<JsonBody> {
  return bytes.length > (caller === STRANGERS ? LARGE_BYTES_OF_STRANGER : LARGE_BYTES)
    ? parseInTurn(bytes, caller, signal)
    : parse(bytes)
}

/**
 * Parses a large body when no other one is being parsed, and leaves time for other requests after
 * it: a body of 256 KiB can take 35 ms. Throws `unavailable` if the client leaves.
 */
async function parseInTurn(
  bytes: Uint8Array,
  caller: string,
  signal: AbortSignal,
): Promise<JsonBody> {
  const release = await largeBodies.acquire(caller, { signal })
  if (!release) throw tooManyAtOnce()
  const startedMs = performance.now()
  try {
    return parse(bytes)
  } finally {
    setTimeout(release, PAUSES_PER_PARSE * (performance.now() - startedMs))
  }
}

function parse(bytes: Uint8Array): JsonBody {
  const text = decode(bytes)
  const value = parseObject(text)
  // In valid UTF-8, only an escape can encode U+0000 or half of a surrogate pair.
  return { value, issues: text.includes('\\u') ? findBadTexts(value) : NO_ISSUES }
}

/** Reads the text in a request's body. Throws like `readJson`. */
export async function readText(request: Request, options: BodyOptions): Promise<string> {
  if (!options.isForeign) checkType(request, TEXT_TYPE, 'text/plain')
  const text = decode(await readBytes(request, options))
  const bad = findTextProblem(text)
  if (bad) throw invalid('invalid_encoding', bad)
  return text
}

/**
 * Reads the first bytes of a body as text, of any type. Replaces bytes that are no UTF-8, and
 * U+0000. Throws `request_timeout`.
 */
export async function readBeginning(
  request: Request,
  { timeoutMs, maxBytes }: BodyLimits & { maxBytes: number },
): Promise<string> {
  const bytes = await arrive(timeoutMs, collect(request, maxBytes, true))
  // `stream` leaves out a character that is cut.
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '\ufffd')
}

/** Throws `unsupported_media_type` for a compressed body. */
export function checkEncoding(request: Request): void {
  const encoding = request.headers.get('content-encoding')
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity') {
    throw new Fault('unsupported_media_type', 'Send the body without a Content-Encoding')
  }
}

function checkType(request: Request, accepted: RegExp, name: string): void {
  checkEncoding(request)
  const type = request.headers.get('content-type') ?? ''
  const charset = CHARSET.exec(type)?.[1]?.toLowerCase()
  if (!accepted.test(type) || (charset !== undefined && !/^utf-?8$/.test(charset))) {
    throw new Fault('unsupported_media_type', `Send the body as ${name} in UTF-8`)
  }
}

/** Reads the Content-Length. Repeated headers arrive as one, joined by a comma and a space. */
function findLength({ headers }: Request): number | 'invalid' | undefined {
  const text = headers.get('content-length')
  if (text === null) return undefined
  const length = Number(text)
  return /^\d+$/.test(text) && Number.isSafeInteger(length) ? length : 'invalid'
}

/** Returns the Content-Length, undefined without one. Throws `InvalidRequest`. */
function readLength(request: Request): number | undefined {
  const length = findLength(request)
  if (length !== 'invalid') return length
  const message = 'Must be sent once, and be a number of bytes'
  throw invalidField('Content-Length', 'invalid_format', message)
}

/**
 * Returns the bytes of a request's body that its headers declare, or else the most it may have.
 * Throws `InvalidRequest`.
 */
export function toDeclaredBytes(request: Request, maxBytes = MAX_BODY_BYTES): number {
  const declared = readLength(request) ?? (request.body ? maxBytes : 0)
  return Math.min(declared, maxBytes)
}

/** Returns whether a body has to wait for its turn, or may have to, or is refused. */
export function isLarge(request: Request): boolean {
  return findLength(request) === 'invalid' || toDeclaredBytes(request) > LARGE_BYTES
}

/** Reads the body of a request. Throws `Fault` (408, 413) or `InvalidRequest`. */
export async function readBytes(
  request: Request,
  { timeoutMs, caller, onArrived, ...options }: BodyOptions,
): Promise<Uint8Array> {
  const { maxBytes = caller === undefined ? LARGE_BYTES : MAX_BODY_BYTES } = options
  const declared = readLength(request)
  if (declared !== undefined && declared > maxBytes) throw tooLarge(maxBytes)
  const bytes = declared === undefined ? collect(request, maxBytes) : request.arrayBuffer()
  const arrived = await arrive<Uint8Array<ArrayBuffer> | ArrayBuffer>(timeoutMs, bytes)
  onArrived?.(arrived.byteLength)
  return new Uint8Array(arrived)
}

/** Returns the bytes that arrive. Throws `Fault`: 408 unless all of them do in time. */
async function arrive<Bytes>(timeoutMs: number, bytes: Promise<Bytes>): Promise<Bytes> {
  try {
    return await withTimeout(timeoutMs, bytes, () => {
      throw incomplete('The body did not arrive in time. Send it again.')
    })
  } catch (error) {
    throw error instanceof Fault
      ? error
      : incomplete('Only a part of the body arrived. Send it again.')
  }
}

function incomplete(message: string): Fault {
  return new Fault('request_timeout', message, { Connection: 'close' })
}

/** Reads a body of unknown length. Stops at the size limit, and throws there unless it is cut. */
async function collect(
  request: Request,
  maxBytes: number,
  isCut = false,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.length
    if (size > maxBytes && !isCut) throw tooLarge(maxBytes)
    chunks.push(chunk)
    if (size > maxBytes) break
  }
  return new Uint8Array(Buffer.concat(chunks).subarray(0, maxBytes))
}

function tooLarge(maxBytes: number): Fault {
  return new Fault('payload_too_large', `The body must be at most ${maxBytes / 1024} KiB`)
}

/** Decodes UTF-8, without byte order marks: Windows programs write one each. */
function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes).replace(/^\ufeff+/, '')
  } catch {
    throw invalid('invalid_encoding', 'The body is not valid UTF-8')
  }
}

/**
 * Parses a JSON object. Numbers in nested values keep their spelling; top-level ones become
 * JavaScript numbers.
 */
function parseObject(text: string): object {
  checkDepth(text)
  let parsed: ReturnType<typeof parseExact>
  try {
    parsed = parseExact(text)
  } catch {
    throw invalid(
      'invalid_json',
      text.trim() === '' ? 'The body is empty' : `The body is not valid JSON: ${explainJson(text)}`,
    )
  }
  const { value, hasRawNumbers } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value)) {
    throw invalid('invalid_type', 'The body must be a JSON object')
  }
  if (!hasRawNumbers) return value
  const fields = value as Record<string, unknown>
  for (const [name, field] of Object.entries(fields)) {
    if (isRawNumber(field)) fields[name] = toNumber(field)
  }
  return value
}

/** Counts a character, to one more than `MAX_DEPTH`. */
function count(text: string, character: string): number {
  let found = 0
  let at = text.indexOf(character)
  while (at >= 0 && ++found <= MAX_DEPTH) at = text.indexOf(character, at + 1)
  return found
}

/**
 * Rejects deep nesting before parsing, because it is cheap to send and expensive to parse and
 * store.
 */
function checkDepth(text: string): void {
  // A native search is several times as fast as the loop below.
  if (count(text, '{') + count(text, '[') <= MAX_DEPTH) return
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
