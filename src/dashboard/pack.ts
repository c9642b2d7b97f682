import { createHash } from 'node:crypto'
import { toContent } from './content.ts'

/** A file of the browser as the program carries it; bytes are base64. */
export interface PackedFile {
  /** Where it is served. With the hash of its content in it, it may be kept for ever. */
  url: string
  type: string
  etag: string
  body: string
  brotli: string | undefined
  gzip: string | undefined
}

const BEST = 11
const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  webmanifest: 'application/manifest+json',
}
const IS_TEXT = /^text\/|svg|json/
/** At the end of a chunk's name. One hash is enough, and every import is shorter without it. */
const BUNDLERS_HASH = /(?:-[a-z0-9]{8})?(\.\w+)$/
/** Files whose URLs are known outside. */
const FIXED: Record<string, string> = {
  'index.html': '/',
  'robots.txt': '/robots.txt',
  'sw.js': '/sw.js',
}

/** Files by name, with URLs and encodings. They refer to each other as `/assets/name`, which becomes the hashed URL. */
export function pack(sources: ReadonlyMap<string, Uint8Array>): Record<string, PackedFile> {
  const packed = new Map<string, PackedFile>()

  function ensure(name: string, trail: readonly string[]): PackedFile {
    const known = packed.get(name)
    if (known) return known
    const source = sources.get(name)
    if (!source) throw new Error(`${trail.at(-1)} refers to ${name}, which does not exist`)
    if (trail.includes(name)) throw new Error(`${name} refers to itself: ${trail.join(' > ')}`)
    const type = toType(name)
    const file = packFile(name, type, IS_TEXT.test(type) ? refer(source, [...trail, name]) : source)
    packed.set(name, file)
    return file
  }

  function refer(source: Uint8Array, trail: readonly string[]): string {
    const text = Buffer.from(source).toString()
    return text.replace(/\/assets\/([\w./-]*\w)/g, (_, name: string) => ensure(name, trail).url)
  }

  const names = [...sources.keys()].sort()
  return Object.fromEntries(names.map(name => [name, ensure(name, [])]))
}

function packFile(name: string, type: string, source: string | Uint8Array): PackedFile {
  const { etag, body, brotli, gzip } = toContent(type, source, BEST)
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 10)
  return {
    url: FIXED[name] ?? `/assets/${name.replace(BUNDLERS_HASH, `.${hash}$1`)}`,
    type,
    etag,
    body: toBase64(body),
    brotli: brotli && toBase64(brotli),
    gzip: gzip && toBase64(gzip),
  }
}

function toType(name: string): string {
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
  if (type === undefined) throw new Error(`${name} has no known content type`)
  return type
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
