import { toReason } from '../errors.ts'
import { logger } from '../log.ts'

const log = logger('outbox')

/**
 * Writes down what is to be known of an attempt that was made. It never throws: what was sent is sent, and sending it
 * again because a row was locked, or the database slow, would be worse than a line that is missing.
 */
export async function keepAttempted(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.error('An attempt was made and could not be written down: {reason}', {
      reason: toReason(error),
    })
  }
}
