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

/** Follows which statement a connection executes, from the messages of its client. */
export function createStatementTracker(): (message: Message) => string {
  const prepared = new Map<string, string>()
  let statement = ''
  return ({ type, bytes }) => {
    const [first = '', second = ''] = 'PBQ'.includes(type) && type ? readTexts(bytes) : []
    if (type === 'Q') statement = first
    if (type === 'B') statement = prepared.get(second) ?? ''
    if (type === 'P') {
      statement = second
      prepared.set(first, second)
    }
    return statement
  }
}

/** Returns the texts at the beginning of a message with a type. */
function readTexts(bytes: Buffer): string[] {
  return bytes.subarray(5).toString('utf8').split('\0', 2)
}

/** A client's request to execute a portal that does not exist. Postgres answers with an error. */
export const IMPOSSIBLE_EXECUTE = Buffer.from('E\0\0\0\x10nowhere\0\0\0\0\0', 'latin1')

/** Returns the message of a simple query. */
export function toQuery(statement: string): Buffer {
  return toMessage('Q', Buffer.from(`${statement}\0`))
}

/** Returns the message of an error of Postgres. */
export function toErrorResponse(severity: 'ERROR' | 'FATAL', sqlState: string): Buffer {
  const fields = [`S${severity}`, `V${severity}`, `C${sqlState}`, 'MThe proxy makes this fail', '']
  return toMessage('E', Buffer.from(`${fields.join('\0')}\0`))
}

function toMessage(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeUInt32BE(4 + content.length, 1)
  return Buffer.concat([head, content])
}

function findApplication(opening: Buffer): string {
  const fields = opening.subarray(8).toString('utf8').split('\0')
  return fields[fields.indexOf('application_name') + 1] ?? ''
}
