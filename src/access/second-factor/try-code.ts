import { Fault } from '../../base/errors.ts'
import { transact, type Pool } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { attempt, clearAttempts, type ThrottleScope } from '../sign-in/throttle.ts'

/**
 * Runs `accept` in a transaction, and returns its result. Undefined stands for a wrong code: it
 * counts as a failure of the scope, and throws `wrong_credentials`. Throws `rate_limited` without
 * a try after too many failures.
 */
export async function tryCode<Result>(
  pool: Pool,
  scope: ThrottleScope,
  accept: (tx: Tx) => Promise<Result | undefined>,
): Promise<Result> {
  let result: Result | undefined
  await attempt(pool, scope, async () => {
    result = await transact(pool, async tx => {
      const accepted = await accept(tx)
      if (accepted !== undefined) await clearAttempts(tx, scope)
      return accepted
    })
    return result !== undefined
  })
  if (result !== undefined) return result
  throw new Fault(
    'wrong_credentials',
    'The code is wrong or was already used. Enter the newest one of your app. If it is refused again, let your phone set its clock by itself.',
  )
}
