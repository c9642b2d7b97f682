import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const log = logger('server')

/** What was opened, to be closed again: the last first. */
export interface CleanupStack {
  push(close: () => Promise<void>): void
  runAll(): Promise<void>
}

export function createCleanupStack(): CleanupStack {
  const cleanups: (() => Promise<void>)[] = []
  return {
    push: close => void cleanups.push(close),
    async runAll() {
      for (const close of cleanups.reverse()) {
        // What cannot be closed keeps nothing else open.
        await close().catch((error: unknown) => {
          log.error('Stopping goes on without one part: {reason}', { reason: toReason(error) })
        })
      }
    },
  }
}
