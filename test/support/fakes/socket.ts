import type { SocketLike } from '../../../src/dashboard/app/live/socket.ts'

export const EPOCH = '5f0c1c4e-8f2b-4b7a-9d35-2f6f4a1f7c10'

/** A socket whose server is the test. */
export interface FakeSocket extends SocketLike {
  /** Messages that the client has sent, parsed. */
  sent: any[]
  isClosed: boolean
  /** Sends a message as the server. */
  receive(message: object): void
  /** Sends the first messages to a new client: hello, and the start of its stream. */
  welcome(head: number, epoch?: string): void
  /** Closes it from the server's side. */
  end(code: number): void
}

export function createFakeSocket(): FakeSocket {
  const socket: FakeSocket = {
    sent: [],
    isClosed: false,
    onmessage: null,
    onclose: null,
    send: (text: string) => void socket.sent.push(JSON.parse(text)),
    close: () => void (socket.isClosed = true),
    receive(message) {
      const event = { data: JSON.stringify(message) } as MessageEvent
      socket.onmessage?.call(socket as unknown as WebSocket, event)
    },
    welcome(head, epoch = EPOCH) {
      socket.receive({ type: 'hello', epoch, build: '' })
      const { project } = socket.sent.at(-1)
      socket.receive({ type: 'subscribed', project, head, recovered: true })
    },
    end(code) {
      socket.isClosed = true
      socket.onclose?.call(socket as unknown as WebSocket, { code } as CloseEvent)
    },
  }
  return socket
}
