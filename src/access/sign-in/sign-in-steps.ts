import { Type, type Static } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { hashSecret, newSecret } from '../guard/secret.ts'

/** How long a sign-in waits for its code, in seconds. */
export const STEP_AGE_S = 300

/** The cell that steps are sealed for. No table has it. */
const CELL = { table: 'sign_in_steps', column: 'cookie', rowId: '' }

const Step = Type.Object({
  /** Ends the step once it is used. The cookie has several spellings in base64url. */
  id: Type.String(),
  accountId: Type.String(),
  isInstalled: Type.Boolean(),
  expiresAtMs: Type.Number(),
  /** Changes with the password and the app of the account. */
  mark: Type.String(),
})
type Step = Static<typeof Step>
const checkStep = TypeCompiler.Compile(Step)

/** A sign-in whose password was correct, and which waits for a code. */
type OpenStep = Pick<Step, 'id' | 'accountId' | 'isInstalled'> & { email: string }

// Sign-ins that wait for a code are kept sealed in a cookie of their browser. An account has any
// number of them, so others who know the password cannot end one.

/** Returns the cookie of a new step, after the password of the account was checked. */
export async function createStep(
  tx: Tx,
  secrets: Pick<Secrets, 'seal'>,
  account: Pick<Step, 'accountId' | 'isInstalled'>,
  nowMs = Date.now(),
): Promise<string> {
  const [{ mark }] = await tx<[{ mark: string }]>`
    select ${markOf(tx)} as mark from accounts p where p.id = ${account.accountId}
  `
  const expiresAtMs = nowMs + STEP_AGE_S * 1000
  const step: Step = { id: newSecret(128), ...account, expiresAtMs, mark }
  return secrets.seal(JSON.stringify(step), CELL)
}

/**
 * Returns the step of a cookie, unless it has expired, password or app have changed, or the
 * password can no longer be used.
 */
export async function findStep(
  sql: Queryable,
  secrets: Pick<Secrets, 'open'>,
  cookie: string,
): Promise<OpenStep | undefined> {
  const step = open(secrets, cookie)
  if (!step) return undefined
  const { id, accountId, isInstalled } = step
  const [row] = await sql<{ email: string }[]>`
    select p.email
    from accounts p
    where p.id = ${accountId} and ${markOf(sql)} = ${step.mark} and is_password_usable(p.id)
  `
  return row && { id, accountId, isInstalled, email: row.email }
}

/** Ends a step, whose account the caller has locked. Returns false if it has ended before. */
export async function endStep(
  tx: Tx,
  secrets: Pick<Secrets, 'open'>,
  cookie: string,
): Promise<boolean> {
  const step = await findStep(tx, secrets, cookie)
  if (!step) return false
  const used = await tx`
    insert into used_challenges (hash, expires_at)
    values (decode(${hashSecret(step.id)}, 'hex'), now() + make_interval(secs => ${STEP_AGE_S}))
    on conflict do nothing
  `
  return used.count === 1
}

function open(secrets: Pick<Secrets, 'open'>, cookie: string): Step | undefined {
  try {
    const step: unknown = JSON.parse(secrets.open(cookie, CELL))
    return checkStep.Check(step) && step.expiresAtMs > Date.now() ? step : undefined
  } catch {
    return undefined
  }
}

/** Returns whether the password of an account requires a code as a second factor. */
export async function hasSecondFactor(sql: Queryable, accountId: string): Promise<boolean> {
  const [row] = await sql<[{ is_on: boolean }]>`
    select exists (
      select from totp_secrets where account_id = ${accountId} and confirmed_at is not null
    ) as is_on
  `
  return row.is_on
}

/** A digest of the password and the app of the account `p`. It reveals neither. */
function markOf(sql: Queryable): Fragment {
  return sql`encode(sha256(convert_to(concat_ws(
    ' ', p.password_hash, (select t.id from totp_secrets t where t.account_id = p.id)
  ), 'UTF8')), 'hex')`
}
