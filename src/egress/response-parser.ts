/** The longest head of a response, and the longest line of a chunked body, in bytes. */
const MAX_HEAD_BYTES = 16 * 1024
/** The most informational responses, such as 103 Early Hints, before the final response. */
const MAX_INFORMATIONAL = 10
const SWITCHING_PROTOCOLS = 101

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/
const FIELD = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/
const LENGTH = /^\d{1,15}$/
const CHUNK_SIZE = /^([\da-f]{1,8})[ \t]*(?:;.*)?$/i

const CR = 13
const LF = 10

/** The status and the header fields of a response. Of a repeated field, the first counts. */
interface ResponseHead {
  status: number
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
}

/**
 * The state of a parser: reading `head` or `body`, or the end. `complete`: the response has ended.
 * `full`: more of the body than the limit has arrived. `invalid`: it is not a response of HTTP/1.1.
 */
export type ParserState = 'head' | 'body' | 'complete' | 'full' | 'invalid'

type Framing = 'none' | 'length' | 'chunks' | 'close'

/**
 * Creates a parser for one response of HTTP/1.1 (RFC 9112). It keeps the first `maxBodyBytes` of
 * the body.
 */
export function createResponseParser(maxBodyBytes: number) {
  let state: ParserState = 'head'
  let head: ResponseHead | undefined
  let informational = 0
  // Bytes of an incomplete head or line.
  let rest: Buffer | undefined
  let framing: Framing = 'none'
  // Bytes until the end of the body or of the chunk.
  let left = 0
  let chunkPart: 'size' | 'data' | 'end' | 'trailers' = 'size'
  let trailerBytes = 0
  let isPersistent = false
  const body: Buffer[] = []
  let bodyBytes = 0

  function readHead(bytes: Buffer): Buffer | undefined {
    const end = findHeadEnd(bytes)
    if (end === -1 || end > MAX_HEAD_BYTES) {
      if (bytes.length > MAX_HEAD_BYTES) state = 'invalid'
      else rest = bytes
      return undefined
    }
    const lines = bytes.toString('latin1', 0, end).trimEnd().split(/\r?\n/)
    const [, minor, status] = STATUS_LINE.exec(lines[0] ?? '') ?? []
    const fields = status === undefined ? undefined : parseFields(lines)
    const number = Number(status)
    if (!fields || number === SWITCHING_PROTOCOLS) {
      state = 'invalid'
    } else if (number < 200) {
      if (++informational > MAX_INFORMATIONAL) state = 'invalid'
    } else {
      begin(number, fields, minor === '1')
    }
    return bytes.subarray(end)
  }

  function begin(status: number, fields: Fields, isHttp11: boolean): void {
    const { headers, transferEncoding, lengths } = fields
    const [length] = lengths
    if (lengths.size > 1 || (length !== undefined && !LENGTH.test(length))) {
      state = 'invalid'
      return
    }
    head = { status, headers }
    isPersistent = isHttp11 && !/(^|[\s,])close([\s,]|$)/i.test(fields.connection)
    if (status === 204 || status === 304) framing = 'none'
    else if (transferEncoding !== undefined) {
      framing = /(^|[\s,])chunked$/i.test(transferEncoding) ? 'chunks' : 'close'
      // Both fields together can be an attack on the next response of the connection.
      if (length !== undefined) isPersistent = false
    } else if (length !== undefined) {
      framing = 'length'
      left = Number(length)
    } else framing = 'close'
    state = framing === 'none' || (framing === 'length' && left === 0) ? 'complete' : 'body'
  }

  /** Keeps a part of the body. */
  function keep(bytes: Buffer): void {
    body.push(bytes)
    bodyBytes += bytes.length
    if (bodyBytes >= maxBodyBytes) state = 'full'
  }

  function readBody(bytes: Buffer): Buffer | undefined {
    if (framing === 'chunks') return readChunks(bytes)
    if (framing === 'close') {
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
      else rest = bytes
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
      trailerBytes += line.length
      if (line === '') state = 'complete'
      else if (trailerBytes > MAX_HEAD_BYTES) state = 'invalid'
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
      let bytes: Buffer | undefined = rest ? Buffer.concat([rest, chunk]) : chunk
      rest = undefined
      while (bytes && bytes.length > 0 && (state === 'head' || state === 'body')) {
        bytes = state === 'head' ? readHead(bytes) : readBody(bytes)
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
      const [first, ...others] = body
      if (!first) return Buffer.alloc(0)
      const bytes = others.length === 0 ? first : Buffer.concat(body)
      return bytes.subarray(0, maxBodyBytes)
    },
    /** True if another request may follow on the connection. */
    get canReuse() {
      return state === 'complete' && isPersistent
    },
  }
}

interface Fields {
  headers: Record<string, string>
  transferEncoding: string | undefined
  connection: string
  /** The distinct values of Content-Length. */
  lengths: Set<string>
}

/** Parses the lines of a head after its first. Returns undefined if a line is not a field. */
function parseFields(lines: readonly string[]): Fields | undefined {
  // Without a prototype, because a server chooses the names.
  const headers = Object.create(null) as Record<string, string>
  const lengths = new Set<string>()
  const connection: string[] = []
  const codings: string[] = []
  for (let at = 1; at < lines.length; at++) {
    const [, name, value = ''] = FIELD.exec(lines[at] ?? '') ?? []
    if (name === undefined) return undefined
    const key = name.toLowerCase()
    headers[key] ??= value
    if (key === 'content-length') lengths.add(value)
    else if (key === 'connection') connection.push(value)
    else if (key === 'transfer-encoding') codings.push(value)
  }
  const transferEncoding = codings.length > 0 ? codings.join() : undefined
  return { headers, transferEncoding, connection: connection.join(), lengths }
}

/** Returns where the body begins; -1 if the head is incomplete. A line may end with LF alone. */
function findHeadEnd(bytes: Buffer): number {
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1]
    if (next === LF) return at + 2
    if (next === CR && bytes[at + 2] === LF) return at + 3
  }
  return -1
}
