import type { Queryable, Tx } from '../db/sql.ts'
import { Fault } from '../errors.ts'

/**
 * Holds a person's row until the transaction ends: first, before what belongs to them, so that two cannot deadlock.
 * Throws `not_found`.
 */
export async function lockPerson(tx: Tx, personId: string): Promise<{ email: string }> {
  const [row] = await tx<{ email: string }[]>`
    select email from people where id = ${personId} for no key update
  `
  if (!row) throw new Fault('not_found', 'No person has this id')
  return row
}

/** The person with this e-mail address, as `parseEmail` spells it. */
export async function findPersonByEmail(
  sql: Queryable,
  email: string,
): Promise<{ personId: string; name: string } | undefined> {
  const [row] = await sql<{ id: string; name: string }[]>`
    select id, name from people where email = ${email}
  `
  return row && { personId: row.id, name: row.name }
}
