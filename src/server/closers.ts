import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const log = logger('server')

/** What was opened, to be closed again: the last first. */
export interface Closers {
  push(close: () => Promise<void>): void
  closeAll(): Promise<void>
}

export function createClosers(): Closers {
  const closers: (() => Promise<void>)[] = []
  return {
    push: close => void closers.push(close),
    async closeAll() {
      for (const close of closers.reverse()) {
        // What cannot be closed keeps nothing else open.
        await close().catch((error: unknown) => {
          log.error('Stopping goes on without one part: {reason}', { reason: toReason(error) })
        })
      }
    },
  }
}
