import { scaled } from '../until.ts'

/** Opens a socket that passes its messages on; rejects if the handshake is refused. */
export async function connectSocket(
  url: string,
  headers: Record<string, string>,
  onMessage: (text: string) => void,
) {
  const socket = new WebSocket(url, { headers } as never)
  socket.addEventListener('message', ({ data }) => onMessage(String(data)))
  const closed = new Promise<{ code: number; reason: string }>(resolve => {
    socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason }))
  })
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error('The handshake was refused')))
  })
  return { socket, closed }
}

const LATE_MS = scaled(10_000)

/** A queue of messages to take one by one; taking fails after a while, and at an error. */
export function createQueue<Message>() {
  const arrived: (Message | Error)[] = []
  const waiting: ((message: Message | Error) => void)[] = []
  return {
    put(message: Message | Error): void {
      const take = waiting.shift()
      if (take) take(message)
      else arrived.push(message)
    },
    async take(): Promise<Message> {
      const late = new Error(`Nothing came within ${LATE_MS} ms`)
      const message =
        arrived.shift() ??
        (await new Promise<Message | Error>(resolve => {
          const timer = setTimeout(() => resolve(late), LATE_MS)
          waiting.push(taken => {
            clearTimeout(timer)
            resolve(taken)
          })
        }))
      if (message instanceof Error) throw message
      return message
    },
  }
}
