import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { accepts } from '../http/compression.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** A response body in each encoding that makes it smaller. */
export interface Content {
  type: string
  etag: string
  body: Bytes
  brotli: Bytes | undefined
  gzip: Bytes | undefined
}

/** Types whose content is compressed already. */
const IS_PACKED = /^image\/(png|webp)$/

/** Compresses text or bytes. Brotli quality 11 takes 25 times as long as 6, for 8 % less. */
export function toContent(type: string, source: string | Uint8Array, quality = 6): Content {
  const body = Buffer.from(source)
  const isPacked = IS_PACKED.test(type)
  const brotli = isPacked
    ? body
    : brotliCompressSync(body, {
        params: {
          [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
          [constants.BROTLI_PARAM_QUALITY]: quality,
          [constants.BROTLI_PARAM_SIZE_HINT]: body.length,
        },
      })
  const gzip = isPacked ? body : gzipSync(body, { level: 9 })
  return {
    type,
    // Weak, because all encodings share one tag.
    etag: `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`,
    body,
    brotli: brotli.length < body.length ? brotli : undefined,
    gzip: gzip.length < body.length ? gzip : undefined,
  }
}

/** The response to a request: 304 if the client has the content, else an encoding it accepts. */
export function toContentResponse(
  request: Request,
  content: Content,
  extraHeaders: Readonly<Record<string, string>>,
): Response {
  const headers = new Headers(extraHeaders)
  headers.set('X-Content-Type-Options', 'nosniff')
  headers.set('ETag', content.etag)
  headers.set('Vary', 'Accept-Encoding')
  if (isKnown(request.headers.get('if-none-match'), content.etag)) {
    return new Response(null, { status: 304, headers })
  }
  headers.set('Content-Type', content.type)
  const accepted = request.headers.get('accept-encoding') ?? ''
  if (content.brotli && accepts(accepted, 'br')) {
    headers.set('Content-Encoding', 'br')
    return new Response(content.brotli, { headers })
  }
  if (content.gzip && accepts(accepted, 'gzip')) {
    headers.set('Content-Encoding', 'gzip')
    return new Response(content.gzip, { headers })
  }
  return new Response(content.body, { headers })
}

function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  const opaque = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some(tag => [opaque, '*'].includes(tag.trim().replace(/^W\//, '')))
}
