/** A WebSocket whose messages are awaited one by one. */
export interface TestSocket {
  /** Resolves with the next message that was not taken. */
  next(): Promise<string>
  send(text: string): void
  /** Resolves with the close code. */
  closed: Promise<number>
}

/** Opens a socket; rejects if the handshake is refused. */
export async function openSocket(url: string): Promise<TestSocket> {
  const socket = new WebSocket(url)
  const arrived: string[] = []
  const waiting: ((text: string) => void)[] = []
  socket.addEventListener('message', ({ data }) => {
    const take = waiting.shift()
    if (take) take(String(data))
    else arrived.push(String(data))
  })
  const closed = new Promise<number>(resolve => {
    socket.addEventListener('close', ({ code }) => resolve(code))
  })
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error('The handshake was refused')))
  })
  return {
    next() {
      const text = arrived.shift()
      return text === undefined
        ? new Promise(resolve => waiting.push(resolve))
        : Promise.resolve(text)
    },
    send: text => socket.send(text),
    closed,
  }
}
