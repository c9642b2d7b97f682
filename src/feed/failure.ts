import { isUnavailable } from '../db/sql.ts'
import { Fault, toReason } from '../errors.ts'
import { logger } from '../log.ts'

const log = logger('feed')

/** Says that something did not work: a database that is away for a while is nothing to wake people for, a bug is. */
export function logFailure(what: string, error: unknown): void {
  const properties = { what, reason: toReason(error) }
  if (error instanceof Fault || isUnavailable(error)) log.debug('{what}: {reason}', properties)
  else log.error('{what}: {reason}', properties)
}
