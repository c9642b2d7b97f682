import { gzipSync } from 'node:zlib'

/** Smaller bodies fit into a packet anyway. */
const MIN_LENGTH = 1_024
/** Larger bodies are compressed beside other requests, which takes longer. */
const MAX_AT_ONCE = 131_072
/** Higher levels save 2 % of JSON, and take longer. */
const LEVEL = 3

/** Compresses a text with gzip; undefined if it is too short to be worth it. */
export function compress(text: string): Uint8Array<ArrayBuffer> | ReadableStream | undefined {
  if (text.length < MIN_LENGTH) return undefined
  if (text.length <= MAX_AT_ONCE) return gzipSync(text, { level: LEVEL })
  return new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
}

/** Returns whether an Accept-Encoding header accepts `coding`, including `*` and `q=0`. */
export function accepts(header: string, coding: string): boolean {
  const weights = new Map<string, number>()
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...options] = part.split(';').map(text => text.trim())
    const weight = options.find(option => option.startsWith('q='))?.slice(2)
    weights.set(name, weight === undefined ? 1 : Number(weight))
  }
  return (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}
