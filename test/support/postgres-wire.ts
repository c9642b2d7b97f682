/** One message of the PostgreSQL protocol, version 3. */
export interface Message {
  /** The type byte; empty for the startup message, which has none. */
  type: string
  bytes: Buffer
  /** The application_name of a startup message, else empty. */
  application: string
}

/** Splits one direction of a connection without TLS into messages, for any chunks. */
export function createReader(from: 'client' | 'server'): (chunk: Buffer) => Message[] {
  let waiting: Buffer = Buffer.alloc(0)
  let isOpening = from === 'client'
  return chunk => {
    waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
    const messages: Message[] = []
    for (;;) {
      const start = isOpening ? 0 : 1
      if (waiting.length < start + 4) return messages
      const length = start + waiting.readUInt32BE(start)
      if (waiting.length < length) return messages
      const bytes = waiting.subarray(0, length)
      waiting = waiting.subarray(length)
      messages.push({
        type: isOpening ? '' : String.fromCharCode(bytes[0]!),
        bytes,
        application: isOpening ? findApplication(bytes) : '',
      })
      isOpening = false
    }
  }
}

function findApplication(opening: Buffer): string {
  const fields = opening.subarray(8).toString('utf8').split('\0')
  return fields[fields.indexOf('application_name') + 1] ?? ''
}
