import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const log = logger('server')

/** Functions that close opened resources, the last opened first. */
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
        // After a failure, the other resources are still closed.
        await close().catch((error: unknown) => {
          log.error('A resource could not be closed: {reason}', { reason: toReason(error) })
        })
      }
    },
  }
}
