import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { COLUMNS, type ExportedEvent, type Format } from './columns.ts'

const LINE_FEED = 10

/** A line of JSON for each event, compressed with gzip. */
export const ndjson: Format = {
  extension: 'ndjson.gz',
  async write(path, pages) {
    const hash = createHash('sha256')
    let events = 0
    async function* toText(): AsyncGenerator<Uint8Array> {
      for await (const page of pages) {
        const text = Buffer.from(page.map(toLine).join(''))
        hash.update(text)
        events += page.length
        yield text
      }
    }
    await pipeline(toText, createGzip(), createWriteStream(path, { flags: 'wx', mode: 0o600 }))
    return { events, sha256: hash.digest('hex') }
  },
  async read(path) {
    const hash = createHash('sha256')
    let events = 0
    await pipeline(createReadStream(path), createGunzip(), async function (text) {
      for await (const part of text as AsyncIterable<Uint8Array>) {
        hash.update(part)
        for (const byte of part) if (byte === LINE_FEED) events++
      }
    })
    return { events, sha256: hash.digest('hex') }
  },
}

/** Numbers in the metadata keep their digits, because its text is not parsed. */
function toLine(event: ExportedEvent): string {
  const fields = COLUMNS.map(name => {
    const value = event[name]
    const isWritten = name === 'metadata' || typeof value === 'bigint'
    return `${JSON.stringify(name)}:${isWritten ? value : JSON.stringify(value)}`
  })
  return `{${fields.join(',')}}\n`
}
