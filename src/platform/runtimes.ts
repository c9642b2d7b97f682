import type { Socket } from './listener.ts'

// What platform.ts uses of the runtimes: their own types are not needed by a check under the other one.

export interface BunSocket {
  data: { data: unknown; socket?: Socket<unknown> }
  send(text: string): number
  subscribe(topic: string): void
  unsubscribe(topic: string): void
  close(code: number, reason: string): void
  getBufferedAmount(): number
}

export interface BunServer {
  port: number
  requestIP(request: Request): { address: string } | null
  upgrade(request: Request, options: { data: BunSocket['data'] }): boolean
  publish(topic: string, text: string): void
  stop(force?: boolean): Promise<void>
}

export interface Hasher {
  hash(password: string, options: object): Promise<string>
  /** Bun takes the password first, the package the hash. */
  verify(first: string, second: string): Promise<boolean>
}

export interface DenoSocket {
  ws: WebSocket
  send(text: string): void
}

export interface DenoServer {
  addr: { port: number }
  shutdown(): Promise<void>
}
