import { createHash } from 'node:crypto'
import { Fault } from '../../base/errors.ts'
import type { Pool } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { toNetwork } from '../../http/limits/failed-authentications.ts'

/**
 * A secret that attackers guess. Each factor has its own counts. A code is a TOTP code or a
 * recovery code.
 */
type Factor = 'password' | 'code'

/**
 * The place where the attempts of one client count. Browsers that are unknown to the account count
 * per network. Known browsers and sessions have lanes of their own, so that guesses from elsewhere
 * do not delay them.
 */
type Lane =
  | { kind: 'network'; address: string }
  | { kind: 'device'; deviceId: string }
  | { kind: 'session'; sessionId: string }

/** Selects the counts of an attempt. `email` need not belong to an account. */
export interface ThrottleScope {
  email: string
  factor: Factor
  lane: Lane
}

/**
 * The guesses that all lanes of one kind together may make at an account: `capacity` at once, then
 * one per `refillS` seconds. A lane with failures leaves up to half of them to lanes with fewer.
 *
 * Networks have one such budget. Sessions and known browsers share another one, because whoever
 * signs in at the proxy or at a provider makes any number of them. Strangers cannot use it up.
 */
const BUDGETS: Record<Factor, { capacity: number; refillS: number }> = {
  password: { capacity: 120, refillS: 30 },
  code: { capacity: 20, refillS: 900 },
}

/**
 * Runs `check`, and returns its result. The attempt counts as a failure from before the check until
 * `clearAttempts`, so that concurrent attempts cannot bypass the limits. It does not count if
 * `check` throws. Throws `rate_limited` without a check during a delay.
 */
export async function attempt(
  pool: Pool,
  scope: ThrottleScope,
  check: () => Promise<boolean>,
): Promise<boolean> {
  await countAttempt(pool, scope)
  try {
    return await check()
  } catch (error) {
    const { account, lane, budget } = toKeys(scope)
    await pool.run(sql => sql`select uncount_attempt(${account}, ${lane}, ${budget})`)
    throw error
  }
}

/** Deletes the failures of a lane after a success. The other lanes of the account keep theirs. */
export async function clearAttempts(tx: Tx, scope: ThrottleScope): Promise<void> {
  const { account, lane, budget } = toKeys(scope)
  await tx`select uncount_attempt(${account}, ${lane}, ${budget})`
  await tx`delete from sign_in_failures where account = ${account} and lane = ${lane}`
}

/**
 * Writes an attempt again, without a change. It takes as long as an entry of the audit log, so that
 * the time of an answer does not tell whether an account exists.
 */
export async function repeatAttempt(tx: Tx, scope: ThrottleScope): Promise<void> {
  const { account, lane } = toKeys(scope)
  await tx`
    update sign_in_failures set last_at = last_at where account = ${account} and lane = ${lane}
  `
}

/** Deletes all failures of an account. */
export async function clearAccountFailures(tx: Tx, email: string): Promise<void> {
  const account = toHash(email)
  // In the order of `count_attempt`, so that the two cannot deadlock.
  for (const factor of ['password', 'code'] as const) {
    for (const kind of ['network', 'session'] as const) {
      const budget = toBudget(factor, kind)
      await tx`delete from sign_in_failures where account = ${account} and lane = ${budget}`
    }
  }
  await tx`delete from sign_in_failures where account = ${account}`
}

/** Counts an attempt in a statement of its own, because refused attempts count, too. */
async function countAttempt(pool: Pool, scope: ThrottleScope): Promise<void> {
  const { account, lane, budget } = toKeys(scope)
  const { capacity, refillS } = BUDGETS[scope.factor]
  const [row] = await pool.run(
    sql => sql<[{ wait_s: number }]>`
      select count_attempt(
        p_account => ${account},
        p_lane => ${lane},
        p_budget => ${budget},
        capacity => ${capacity},
        refill_s => ${refillS}
      ) as wait_s
    `,
  )
  if (row.wait_s <= 0) return
  const seconds = Math.max(1, Math.ceil(row.wait_s))
  throw new Fault(
    'rate_limited',
    `Too many attempts with a wrong ${scope.factor}. Try again in ${seconds} s.`,
    { 'Retry-After': String(seconds) },
  )
}

interface Keys {
  account: Buffer
  lane: Buffer
  budget: Buffer
}

function toKeys({ email, factor, lane }: ThrottleScope): Keys {
  return {
    account: toHash(email),
    lane: toHash(`${factor} ${lane.kind} ${toName(lane)}`),
    budget: toBudget(factor, lane.kind),
  }
}

function toName(lane: Lane): string {
  if (lane.kind === 'device') return lane.deviceId
  if (lane.kind === 'session') return lane.sessionId
  // A /48 is what one site gets, so a site cannot invent networks.
  return toNetwork(lane.address, 48)
}

function toBudget(factor: Factor, kind: Lane['kind']): Buffer {
  const owner = kind === 'network' ? '' : ' of sessions and known browsers'
  return toHash(`${factor} budget${owner}`)
}

function toHash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
