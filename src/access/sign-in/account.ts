import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { requireOwnFactor } from '../guard/authorize.ts'
import type { Role } from '../guard/permissions.ts'
import type { AccountInfo } from '../guard/schema.ts'
import type { Account } from './schema.ts'
import { readProven, type AdmittedCaller, type AdmittedSession } from '../guard/sessions.ts'

/** Returns the caller's account with its organizations and projects, oldest first. */
export async function getAccount(
  sql: Queryable,
  { account, session, isVerified }: AdmittedSession,
): Promise<Account> {
  const rows = await sql<
    {
      organization_id: string
      organization: string
      role: Role
      needs_second_factor: boolean
      project_id: string | null
      project: string | null
      is_sample: boolean | null
    }[]
  >`
    select
      o.id as organization_id, o.name as organization, m.role, n.needs_second_factor,
      p.id as project_id, p.name as project, p.is_sample
    from memberships m
      join organizations o on o.id = m.organization_id and o.deleted_at is null
      cross join lateral (
        select lacks_second_factor(o.requires_second_factor, coalesce(
            (select s.is_multi_factor from sessions s where s.id = ${session.id}), false
          )) as needs_second_factor
      ) n
      left join projects p on p.organization_id = o.id and p.deleted_at is null
        and not n.needs_second_factor
    where m.account_id = ${account.id}
    order by o.id, p.id
  `
  const organizations = new Map<string, Account['organizations'][number]>()
  for (const { organization_id, project_id, project, is_sample, ...row } of rows) {
    const id = toId('org', organization_id)
    const known = organizations.get(id) ?? {
      id,
      name: row.organization,
      role: row.role,
      needsSecondFactor: row.needs_second_factor,
      projects: [],
    }
    organizations.set(id, known)
    if (project_id !== null) {
      known.projects.push({
        id: toId('prj', project_id),
        name: project ?? '',
        isSample: is_sample ?? false,
      })
    }
  }
  return {
    person: toAccountInfo(account),
    isVerified,
    credentials: await readCredentials(sql, account.id),
    organizations: [...organizations.values()],
  }
}

/** Returns the ways in which an account can sign in and be verified. */
async function readCredentials(sql: Queryable, accountId: string): Promise<Account['credentials']> {
  const [row] = await sql<
    {
      has_password: boolean
      passkeys: number
      has_second_factor: boolean
      recovery_codes: number
    }[]
  >`
    select
      p.password_hash is not null and is_password_usable(p.id) as has_password,
      (
        select count(*)::int from passkeys k where k.account_id = p.id and k.disabled_at is null
      ) as passkeys,
      exists (
        select from totp_secrets t where t.account_id = p.id and t.confirmed_at is not null
      ) as has_second_factor,
      (
        select count(*)::int from recovery_codes c where c.account_id = p.id and c.used_at is null
      ) as recovery_codes
    from accounts p
    where p.id = ${accountId}
  `
  return {
    hasPassword: row?.has_password ?? false,
    passkeys: row?.passkeys ?? 0,
    hasSecondFactor: row?.has_second_factor ?? false,
    recoveryCodes: row?.recovery_codes ?? 0,
  }
}

/** Converts an account to the form that /api returns. */
export function toAccountInfo({ id, ...rest }: AdmittedSession['account']): AccountInfo {
  return { id: toId('per', id), ...rest }
}

/**
 * Locks an account until the transaction ends. Call it before locking rows that belong to the
 * account, so that transactions cannot deadlock. Throws `not_found`.
 */
export async function lockAccount(tx: Tx, accountId: string): Promise<{ email: string }> {
  const [row] = await tx<{ email: string }[]>`
    select email from accounts where id = ${accountId} for no key update
  `
  if (!row) throw new Fault('not_found', 'No account has this id')
  return row
}

/**
 * Locks the account with this e-mail address, as normalized by `parseEmail`. Returns undefined
 * without one, also if its address changes before it is locked.
 */
export async function lockAccountByEmail(
  tx: Tx,
  email: string,
): Promise<{ id: string; isOperator: boolean } | undefined> {
  // After a wait, Postgres compares the address of the locked row again.
  const [row] = await tx<{ id: string; isOperator: boolean }[]>`
    select id, is_operator as "isOperator" from accounts where email = ${email} for no key update
  `
  return row
}

/**
 * Locks the account of a session like `lockAccount`, and checks its own factor again: the account
 * may have got one since admission. Throws `signed_out` for a token and if the session has ended,
 * and `second_factor_needed`.
 */
export async function lockOwnAccount(tx: Tx, admitted: AdmittedCaller): Promise<{ email: string }> {
  const locked = await lockAccount(tx, admitted.account.id)
  const proven = admitted.session && (await readProven(tx, admitted))
  if (!proven) throw new Fault('signed_out', 'Sign in first')
  requireOwnFactor(proven)
  return locked
}

/** Returns the uuid of the account with this e-mail address, as normalized by `parseEmail`. */
export async function findAccountByEmail(
  sql: Queryable,
  email: string,
): Promise<string | undefined> {
  const [row] = await sql<{ id: string }[]>`select id from accounts where email = ${email}`
  return row?.id
}
