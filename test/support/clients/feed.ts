import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ServerMessage } from '../../../src/log/feed/schema.ts'
import type { SignedInAccount } from '../worlds/signed-in-account.ts'
import { connectSocket, createQueue } from './socket.ts'

/** A message that a client gets. `any`: tests check every field that they read. */
export type Message = any

/** A socket of an account; every message is checked against the protocol. */
export interface FeedClient {
  /** All messages so far, without heartbeats. */
  all: Message[]
  /** Resolves with the next message that was not taken, without heartbeats. */
  next(): Promise<Message>
  /** Resolves with the next heartbeat. */
  beat(): Promise<Message>
  /** Takes `count` events, and returns their seqs. */
  seqs(count: number): Promise<number[]>
  /** Sends an object as JSON, and bytes as a binary message. */
  send(message: object | string | Uint8Array<ArrayBuffer>): void
  /** Subscribes and returns the answer. */
  subscribe(project: string, options?: object): Promise<Message>
  closed: Promise<{ code: number; reason: string }>
  close(): void
}

const ajv = new Ajv2020({ strict: false })
addFormats.default(ajv)
// TypeBox keeps metadata under symbols, which JSON Schema does not have.
const isServerMessage: (message: Message) => boolean = ajv.compile(
  JSON.parse(JSON.stringify(ServerMessage)),
)

export interface FeedOptions {
  headers?: Record<string, string | undefined>
  /** Do not wait for hello. */
  isBare?: boolean
}

/** Opens a socket and takes hello; rejects if the handshake is refused. */
export async function openFeed(
  url: string,
  { cookie }: Pick<SignedInAccount, 'cookie'>,
  { headers = {}, isBare = false }: FeedOptions = {},
): Promise<FeedClient & { hello: Message }> {
  const sent = Object.entries({ cookie, origin: url, ...headers }).filter(([, value]) => value)
  const all: Message[] = []
  const messages = createQueue<Message>()
  const beats = createQueue<Message>()
  const { socket, closed } = await connectSocket(
    `${url.replace('http', 'ws')}/api/feed`,
    Object.fromEntries(sent),
    text => {
      const message: Message = JSON.parse(text)
      if (!isServerMessage(message)) {
        messages.put(new Error(`Not in the protocol: ${text.slice(0, 500)}`))
      } else if (message.type === 'heartbeat') beats.put(message)
      else {
        all.push(message)
        messages.put(message)
      }
    },
  )
  const send: FeedClient['send'] = message =>
    socket.send(
      typeof message === 'string' || message instanceof Uint8Array
        ? message
        : JSON.stringify(message),
    )
  const client: FeedClient = {
    all,
    next: messages.take,
    beat: beats.take,
    async seqs(count) {
      const seqs: number[] = []
      while (seqs.length < count) {
        const message = await messages.take()
        if (message.type !== 'event') throw new Error(`Not an event: ${JSON.stringify(message)}`)
        seqs.push(message.seq)
      }
      return seqs
    },
    send,
    async subscribe(project, options = {}) {
      send({ type: 'subscribe', project, ...options })
      return messages.take()
    },
    closed,
    close: () => socket.close(),
  }
  return Object.assign(client, { hello: isBare ? undefined : await messages.take() })
}
