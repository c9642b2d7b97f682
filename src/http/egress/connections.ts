import { openConnection, type Connection, type DialOptions } from './connection.ts'
import type { CheckedUrl } from './guard.ts'

export interface ConnectionsOptions extends DialOptions {
  /** The most idle connections to one host. */
  maxIdle: number
  /** How long an idle connection is kept. */
  idleMs: number
}

interface Idle {
  connection: Connection
  sinceMs: number
}

/** Creates the connections of a client. An idle connection is used again for the same origin. */
export function createConnections({ maxIdle, idleMs, ...dial }: ConnectionsOptions) {
  const idle = new Map<string, Idle[]>()
  let sweeping: ReturnType<typeof setTimeout> | undefined

  function open(target: CheckedUrl): Connection {
    const { origin } = target.url
    return openConnection(target, {
      ...dial,
      onIdle: connection => store(origin, connection),
      onClosed: connection => remove(origin, connection),
    })
  }

  function store(origin: string, connection: Connection): void {
    const kept = idle.get(origin) ?? []
    if (kept.length >= maxIdle) return connection.destroy()
    kept.push({ connection, sinceMs: performance.now() })
    idle.set(origin, kept)
    if (sweeping) return
    sweeping = setTimeout(sweep, idleMs)
    sweeping.unref()
  }

  function remove(origin: string, connection: Connection): void {
    const kept = idle.get(origin)
    const at = kept?.findIndex(one => one.connection === connection) ?? -1
    if (at !== -1) kept?.splice(at, 1)
    if (kept?.length === 0) idle.delete(origin)
  }

  function sweep(): void {
    sweeping = undefined
    const oldestMs = performance.now() - idleMs
    for (const { connection, sinceMs } of [...idle.values()].flat()) {
      if (sinceMs <= oldestMs) connection.destroy()
    }
    if (idle.size === 0) return
    sweeping = setTimeout(sweep, idleMs)
    sweeping.unref()
  }

  return {
    /** Returns the connection that was idle for the shortest time; otherwise a new one. */
    take(target: CheckedUrl): Connection {
      const { origin } = target.url
      const kept = idle.get(origin)
      const last = kept?.pop()
      if (kept?.length === 0) idle.delete(origin)
      return last?.connection ?? open(target)
    },
    open,
    /** Closes idle connections. */
    close(): void {
      clearTimeout(sweeping)
      sweeping = undefined
      for (const { connection } of [...idle.values()].flat()) connection.destroy()
    },
  }
}
