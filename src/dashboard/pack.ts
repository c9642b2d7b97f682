import { createHash } from 'node:crypto'
import { toContent, type Content } from './content.ts'

/** A built file as it is embedded in the program. Bytes are base64. */
export interface PackedFile {
  /** The path of the file. It contains a hash of the build, so that it can be cached forever. */
  url: string
  type: string
  etag: string
  /** Undefined for large files. Their gzip is unpacked on request. */
  body: string | undefined
  brotli: string | undefined
  gzip: string | undefined
}

const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  webp: 'image/webp',
  webmanifest: 'application/manifest+json',
}
const IS_TEXT = /^text\/|svg|json/
/** Files with fixed paths. */
const FIXED: Record<string, string> = {
  'index.html': '/',
  'robots.txt': '/robots.txt',
  'sw.js': '/sw.js',
}

interface PackOptions {
  /** Of Brotli. The best, 11, takes 15 seconds for a large file. */
  quality?: number | undefined
  /** The program has these files as gzip alone. */
  isLarge?: boolean
  /** Files that are already packed, to which these may refer. */
  others?: Readonly<Record<string, PackedFile>>
}

/**
 * Packs files by name, with paths and encodings. The files of a build share a folder that is named
 * after a hash of them. References of the form `/assets/name` become `/assets/build/name`.
 */
export function pack(
  sources: ReadonlyMap<string, Uint8Array>,
  { quality, isLarge = false, others = {} }: PackOptions = {},
): Record<string, PackedFile> {
  const names = [...sources.keys()].sort()
  const build = toBuild(names.map(name => sources.get(name) ?? ''))
  const toUrl = (name: string) => FIXED[name] ?? `/assets/${build}/${name}`

  function resolveReferences(name: string, source: Uint8Array): string {
    return Buffer.from(source)
      .toString()
      .replace(/\/assets\/([\w./-]*\w)/g, (_, other: string) => {
        const url = sources.has(other) ? toUrl(other) : others[other]?.url
        if (url === undefined) throw new Error(`${name} refers to ${other}, which does not exist`)
        return url
      })
  }

  return Object.fromEntries(
    names.map(name => {
      const type = toType(name)
      const source = sources.get(name) ?? new Uint8Array()
      const text = IS_TEXT.test(type) ? resolveReferences(name, source) : source
      const packed = toPacked(toUrl(name), toContent(type, text, quality))
      return [name, isLarge ? { ...packed, body: undefined } : packed]
    }),
  )
}

function toBuild(contents: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const content of contents) hash.update(createHash('sha256').update(content).digest())
  return hash.digest('hex').slice(0, 10)
}

function toPacked(url: string, { type, etag, body, brotli, gzip }: Content): PackedFile {
  return {
    url,
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
