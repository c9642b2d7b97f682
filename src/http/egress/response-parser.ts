/** The longest head of a response, and the longest line of a chunked body, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024
/**
 * The most bytes that are not part of the body, in addition to the length of the longest body:
 * heads, chunk sizes with their extensions, and trailers.
 */
const MAX_OVERHEAD_BYTES = 32 * 1024
/** The most informational responses, such as 103 Early Hints, before the final response. */
const MAX_INFORMATIONAL = 10
const SWITCHING_PROTOCOLS = 101
/** The first size of a buffer that grows. */
const FIRST_BYTES = 512

const STATUS_LINE = /^HTTP\/1\.(\d)[ \t]+([1-9]\d\d)(?:[ \t]|$)/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
/** A line of a field that continues the line before, and a CR that ends no line (RFC 9112). */
const FOLD = /\r?\n[ \t]+/g
const BARE_CR = /\r(?!\n)/g
/** The fields that decide where a response ends. */
const FRAMING = /content-length|transfer-encoding/i
const LENGTH = /^\d{1,15}$/
const CHUNK_SIZE = /^0*([\da-f]{1,8})[ \t]*(?:;.*)?$/i

const CR = 13
const LF = 10

/** The status and the header fields of a response. Of a repeated field, the first counts. */
interface ResponseHead {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  framing: Framing
  /** Bytes of the body, if its framing is `length`. */
  length: number
  /** True if another response may follow on the connection. */
  isPersistent: boolean
}

/**
 * The state of a parser: reading `head` or `body`, or the end. `complete`: the response has ended.
 * `full`: more of the body than the limit has arrived. `invalid`: it is not a response of HTTP/1.1.
 */
export type ParserState = 'head' | 'body' | 'complete' | 'full' | 'invalid'

type Framing = 'none' | 'length' | 'chunks' | 'close'

/**
 * Creates a parser for one response of HTTP/1.1 (RFC 9112). It keeps a copy of the first
 * `maxBodyBytes` of the body, because a part of a received buffer would keep all of it in memory.
 *
 * It accepts what RFC 9112 lets a recipient repair: folded lines, spaces before a colon, a bare CR
 * or LF, a missing reason, and lines that are no field. No other request follows on the connection
 * then. A response whose end is ambiguous is invalid.
 */
export function createResponseParser(maxBodyBytes: number) {
  let state: ParserState = 'head'
  let head: ResponseHead | undefined
  let informational = 0
  // Bytes of an incomplete head or line, and how many of them were searched for its end.
  const rest = createBytes()
  let searched = 0
  let hasRest = false
  // Bytes until the end of the body or of the chunk.
  let left = 0
  let chunkPart: 'size' | 'data' | 'end' | 'trailers' = 'size'
  let isPersistent = false
  const body = createBytes()
  let overheadBytes = 0

  function readHead(bytes: Buffer): Buffer | undefined {
    const start = bytes.findIndex(byte => byte !== CR && byte !== LF)
    // Line breaks before the status line.
    if (start !== 0) return start === -1 ? undefined : bytes.subarray(start)
    const end = findHeadEnd(bytes, Math.max(0, searched - 2))
    if (end === -1 || end > MAX_HEAD_BYTES) {
      if (bytes.length > MAX_HEAD_BYTES) state = 'invalid'
      else keepRest(bytes)
      return undefined
    }
    const parsed = parseHead(bytes.toString('latin1', 0, end).trimEnd())
    if (!parsed || parsed.status === SWITCHING_PROTOCOLS) {
      state = 'invalid'
    } else if (parsed.status < 200) {
      if (++informational > MAX_INFORMATIONAL) state = 'invalid'
    } else {
      head = parsed
      left = parsed.length
      isPersistent = parsed.isPersistent
      const isEmpty = head.framing === 'none' || (head.framing === 'length' && left === 0)
      state = isEmpty ? 'complete' : 'body'
    }
    return bytes.subarray(end)
  }

  /** Keeps the end of what has arrived until more follows. */
  function keepRest(bytes: Buffer): void {
    hasRest = true
    if (bytes.length === rest.length) return
    const copy = Buffer.from(bytes)
    rest.clear()
    rest.append(copy)
  }

  /** Copies a part of the body. */
  function keep(bytes: Buffer): void {
    overheadBytes -= bytes.length
    body.append(bytes.subarray(0, maxBodyBytes - body.length))
    if (body.length >= maxBodyBytes) state = 'full'
  }

  function readBody(bytes: Buffer): Buffer | undefined {
    if (head?.framing === 'chunks') return readChunks(bytes)
    if (head?.framing === 'close') {
      keep(bytes)
      return undefined
    }
    const part = bytes.length > left ? bytes.subarray(0, left) : bytes
    left -= part.length
    keep(part)
    if (left === 0) state = 'complete'
    return bytes.subarray(part.length)
  }

  function readChunks(bytes: Buffer): Buffer | undefined {
    if (chunkPart === 'data') {
      const part = bytes.length > left ? bytes.subarray(0, left) : bytes
      left -= part.length
      keep(part)
      if (left === 0) chunkPart = 'end'
      return bytes.subarray(part.length)
    }
    const at = bytes.indexOf(LF)
    if (at === -1) {
      if (bytes.length > MAX_HEAD_BYTES) state = 'invalid'
      else keepRest(bytes)
      return undefined
    }
    readChunkLine(bytes.toString('latin1', 0, at > 0 && bytes[at - 1] === CR ? at - 1 : at))
    return bytes.subarray(at + 1)
  }

  function readChunkLine(line: string): void {
    if (chunkPart === 'end') {
      if (line === '') chunkPart = 'size'
      else state = 'invalid'
    } else if (chunkPart === 'trailers') {
      if (line === '') state = 'complete'
    } else {
      const size = CHUNK_SIZE.exec(line)?.[1]
      if (size === undefined) state = 'invalid'
      left = Number.parseInt(size ?? '', 16)
      chunkPart = left === 0 ? 'trailers' : 'data'
    }
  }

  return {
    /** Reads the next bytes of the connection. */
    push(chunk: Buffer): ParserState {
      overheadBytes += chunk.length
      searched = rest.length
      let bytes: Buffer | undefined = chunk
      if (searched > 0) {
        rest.append(chunk)
        bytes = rest.bytes
      }
      hasRest = false
      while (bytes && bytes.length > 0 && (state === 'head' || state === 'body')) {
        bytes = state === 'head' ? readHead(bytes) : readBody(bytes)
        searched = 0
      }
      if (!hasRest) rest.clear()
      if (
        (state === 'head' || state === 'body') &&
        overheadBytes > MAX_OVERHEAD_BYTES + maxBodyBytes
      ) {
        state = 'invalid'
      }
      // Bytes after the response belong to no request.
      if (bytes && bytes.length > 0) isPersistent = false
      return state
    },
    /** Undefined until the head of the final response has arrived. */
    get head() {
      return head
    },
    /** The part of the body that has arrived, at most `maxBodyBytes`. */
    get body(): Buffer {
      return body.bytes
    },
    /** True if another request may follow on the connection. */
    get canReuse() {
      return state === 'complete' && isPersistent
    },
  }
}

/** Parses a head. Returns undefined if it is none, or does not tell where its response ends. */
function parseHead(text: string): ResponseHead | undefined {
  const lines = text.replaceAll(BARE_CR, ' ').replaceAll(FOLD, ' ').split(/\r?\n/)
  const [, minor, code] = STATUS_LINE.exec(lines[0] ?? '') ?? []
  const fields = code === undefined ? undefined : parseFields(lines)
  if (!fields) return undefined
  const status = Number(code)
  const { headers, codings, connection, lengths } = fields
  const [length] = lengths
  const isAmbiguous = lengths.size > 1 || (length !== undefined && !LENGTH.test(length))
  if (isAmbiguous && status >= 200) return undefined
  const isExact = !fields.isRepaired && text.search(FOLD) < 0 && text.search(BARE_CR) < 0
  const isClosing = /(^|[\s,])close([\s,]|$)/i.test(connection.join())
  let framing: Framing = length === undefined ? 'close' : 'length'
  if (status === 204 || status === 304) framing = 'none'
  else if (codings.length > 0)
    framing = /(^|[\s,])chunked$/i.test(codings.join()) ? 'chunks' : 'close'
  // Both fields together can be an attack on the next response of the connection.
  const isDoubtful = length !== undefined && framing !== 'length' && framing !== 'none'
  const isPersistent = minor !== '0' && isExact && !isClosing && !isDoubtful
  return {
    ...{ status, headers, framing, isPersistent },
    length: framing === 'length' ? Number(length) : 0,
  }
}

interface Fields {
  headers: Record<string, string>
  /** The values of Connection, Transfer-Encoding, and the distinct ones of Content-Length. */
  connection: string[]
  codings: string[]
  lengths: Set<string>
  /** True if a line was not exactly a field. */
  isRepaired: boolean
}

/**
 * Parses the lines of a head after its first. A line that is no field is left out. Returns
 * undefined if it may be one of those that frame the response.
 */
function parseFields(lines: readonly string[]): Fields | undefined {
  // Without a prototype, because a server chooses the names.
  const headers = Object.create(null) as Record<string, string>
  const lengths = new Set<string>()
  const connection: string[] = []
  const codings: string[] = []
  let isRepaired = false
  for (let at = 1; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const colon = line.indexOf(':')
    const before = line.slice(0, Math.max(0, colon))
    const name = before.trimEnd()
    if (name !== before) isRepaired = true
    if (!TOKEN.test(name)) {
      if (FRAMING.test(line)) return undefined
      isRepaired = true
      continue
    }
    const value = line.slice(colon + 1).trim()
    const key = name.toLowerCase()
    headers[key] ??= value
    if (key === 'content-length') for (const one of value.split(',')) lengths.add(one.trim())
    else if (key === 'connection') connection.push(value)
    else if (key === 'transfer-encoding') codings.push(value)
  }
  return { headers, connection, codings, lengths, isRepaired }
}

/** Returns where the body begins; -1 if the head is incomplete. A line may end with LF alone. */
function findHeadEnd(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1]
    if (next === LF) return at + 2
    if (next === CR && bytes[at + 2] === LF) return at + 3
  }
  return -1
}

/** Creates a buffer that grows with the bytes that are copied to it. */
function createBytes() {
  let buffer = Buffer.alloc(0)
  let length = 0
  return {
    append(bytes: Buffer): void {
      if (length + bytes.length > buffer.length) {
        const larger = Buffer.alloc(Math.max(length + bytes.length, 2 * buffer.length, FIRST_BYTES))
        buffer.copy(larger, 0, 0, length)
        buffer = larger
      }
      bytes.copy(buffer, length)
      length += bytes.length
    },
    clear(): void {
      buffer = Buffer.alloc(0)
      length = 0
    },
    get bytes(): Buffer {
      return buffer.subarray(0, length)
    },
    get length() {
      return length
    },
  }
}
