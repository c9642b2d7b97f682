import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { toId } from '../ids.ts'
import { lockPerson } from './people.ts'
import { hashSecret, newSecret } from './secret.ts'
import { forgetAccount } from './throttle.ts'

interface ResetLink {
  /** For `BASE_URL/reset#token`: it is here and nowhere else. */
  token: string
  expiresAt: Date
}

/**
 * Makes a link with which a person sets a new password, once, within an hour. It withdraws their older ones, and
 * forgets the failures to sign in to their account. Whoever holds it has the account. Throws `not_found`.
 */
export async function createResetLink(tx: Tx, actor: Actor, personId: string): Promise<ResetLink> {
  const { email } = await lockPerson(tx, personId)
  const token = newSecret(256)
  await withdrawResetLinks(tx, personId)
  const [row] = await tx<[{ expires_at: Date }]>`
    insert into reset_links (hash, person_id, expires_at)
    values (decode(${hashSecret(token)}, 'hex'), ${personId}, now() + interval '1 hour')
    returning expires_at
  `
  await forgetAccount(tx, email)
  await writeAudit(tx, actor, { action: 'reset.created', target: toId('per', personId) })
  return { token, expiresAt: row.expires_at }
}

/** Ends every open link of a person. */
export async function withdrawResetLinks(tx: Tx, personId: string): Promise<void> {
  await tx`delete from reset_links where person_id = ${personId}`
}

/** Whose a live link is; the link lives on. */
export async function findResetPerson(
  sql: Queryable,
  token: string,
): Promise<{ personId: string; name: string; email: string } | undefined> {
  const [row] = await sql<{ id: string; name: string; email: string }[]>`
    select p.id, p.name, p.email
    from reset_links r
      join people p on p.id = r.person_id
    where r.hash = decode(${hashSecret(token)}, 'hex') and r.expires_at > now()
  `
  return row && { personId: row.id, name: row.name, email: row.email }
}

/** Uses a link up; whether it was still a live one of this person, whose row must be locked. */
export async function takeResetLink(tx: Tx, token: string, personId: string): Promise<boolean> {
  const taken = await tx`
    delete from reset_links
    where hash = decode(${hashSecret(token)}, 'hex') and person_id = ${personId} and expires_at > now()
  `
  return taken.count === 1
}
