import { Fault } from '../../base/errors.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'

// Trying an e-mail address tells whether another account has it, because no mail server can ask the
// owner of the address. The audit log counts the tries of 24 hours, and a limit bounds them.

const MAX_OF_ACCOUNT = 10
const MAX_OF_ORGANIZATION = 20

/**
 * Throws `rate_limited` if an account has tried ten new e-mail addresses, used ones or not. The
 * caller has locked the account.
 */
export async function limitAddressChanges(tx: Tx, accountId: string): Promise<void> {
  const where = tx`
    organization_id is null and account_id = ${accountId} and (
      action = 'account.addressRefused'
      or action = 'account.edited' and details ->> 'fields' like '%email%'
    )
  `
  await limitTries(tx, where, MAX_OF_ACCOUNT)
}

/**
 * Throws `rate_limited` if 20 new accounts were refused in an organization for the address of
 * another account. It counts if the caller has locked the organization.
 */
export async function limitNewAccounts(sql: Queryable, organizationId: string): Promise<void> {
  const where = sql`organization_id = ${organizationId} and action = 'invite.addressRefused'`
  await limitTries(sql, where, MAX_OF_ORGANIZATION)
}

async function limitTries(sql: Queryable, where: Fragment, max: number): Promise<void> {
  const [row] = await sql<{ wait_s: number }[]>`
    select extract(epoch from at + interval '24 hours' - now())::float8 as wait_s
    from audit_log
    where ${where} and at > now() - interval '24 hours'
    order by at desc
    offset ${max - 1}
    limit 1
  `
  if (!row) return
  throw new Fault(
    'rate_limited',
    'Too many e-mail addresses were tried in 24 hours. Try again tomorrow, or sign in with an existing account.',
    { 'Retry-After': String(Math.max(1, Math.ceil(row.wait_s))) },
  )
}
