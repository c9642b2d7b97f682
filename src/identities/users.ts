import type { Pool } from '../db/pool.ts'
import type { Fragment, Queryable, Tx } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { Fault } from '../errors.ts'
import type { Erased } from './schema.ts'

const ERASE_STEP = 5_000

interface Row {
  public_id: string
  user_id: string
  properties: string
  aliases: string
  created_at: Date
  updated_at: Date
}

/** The JSON of the user whom `reference` names, by user_id or else by alias. Throws `not_found`. */
export async function getUserJson(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string> {
  const [row] = await sql<Row[]>`
    select
      i.public_id, i.user_id, i.properties::text as properties,
      (
        select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
        from aliases a
        where a.project_id = i.project_id and a.user_id = i.user_id
      ) as aliases,
      i.created_at, i.updated_at
    from identities i
    where i.project_id = ${projectId} and i.user_id = ${resolveUser(sql, projectId, reference)}
  `
  if (!row) throw noUser()
  return (
    `{"id":"${row.public_id}","userId":${JSON.stringify(row.user_id)},"properties":${row.properties}` +
    `,"aliases":${row.aliases},"createdAt":"${row.created_at.toISOString()}","updatedAt":"${row.updated_at.toISOString()}"}`
  )
}

/** The user_id that `reference` leads to: itself, or else that of the user who has it as an alias; null for nobody's. */
export function resolveUser(sql: Queryable, projectId: string, reference: string): Fragment {
  return sql`coalesce(
    (select user_id from identities where project_id = ${projectId} and user_id = ${reference}),
    (select user_id from aliases where project_id = ${projectId} and alias = ${reference})
  )`
}

export function noUser(): Fault {
  return new Fault('not_found', 'No user has this user_id or alias')
}

/** What was erased; identityId is the public id, undefined for somebody whom only events named. */
export interface Erasure {
  identityId: string | undefined
  events: number
}

/**
 * Erases a user and every reference to them; `onErased` runs in the transaction that ends it. Throws `not_found` when
 * nothing knows the user.
 */
export async function eraseUser(
  pool: Pool,
  projectId: string,
  userId: string,
  onErased: (tx: Tx, erasure: Erasure) => Promise<void> = async () => {},
): Promise<Erased> {
  let events = 0
  // In steps that each take a moment: all of a busy user at once would hold up the project, and run into a time-out.
  for (let isMore = true; isMore;) {
    const [step] = await pool.run(
      sql => sql<[{ events: number; answers: number }]>`
        select events, answers from forget_user(${projectId}, ${userId}, ${ERASE_STEP})
      `,
    )
    events += step.events
    isMore = step.events === ERASE_STEP || step.answers === ERASE_STEP
  }
  await transact(pool, async tx => {
    await tx`select from event_logs where project_id = ${projectId} for update`
    const [identity] = await tx<{ public_id: string }[]>`
      select public_id from identities where project_id = ${projectId} and user_id = ${userId}
    `
    const [last] = await tx<[{ events: number }]>`
      select events from erase_user(${projectId}, ${userId})
    `
    events += last.events
    if (!identity && events === 0) throw new Fault('not_found', 'No user has this user_id')
    await onErased(tx, { identityId: identity?.public_id, events })
  })
  return { userId, events }
}

/** Every reference that resolves to whom `reference` names: the user_id and its aliases, or only itself. */
export async function listReferences(
  sql: Queryable,
  projectId: string,
  reference: string,
): Promise<string[]> {
  const rows = await sql<{ reference: string }[]>`
    with person as (
      select coalesce(${resolveUser(sql, projectId, reference)}, ${reference}) as user_id
    )
    select user_id as reference from person
    union
    select a.alias
    from person p
      join aliases a on a.project_id = ${projectId} and a.user_id = p.user_id
    where not exists (select from identities i where i.project_id = a.project_id and i.user_id = a.alias)
  `
  return rows.map(row => row.reference)
}
