import type { Queryable } from '../db/sql.ts'
import type { Page } from '../http/envelope.ts'
import { findBadText } from '../http/text.ts'
import { invalidField } from '../http/validation.ts'
import { toId } from '../ids.ts'
import type { AliasChange, AliasHistoryQuery } from './user-schema.ts'
import { noUser, resolveUser } from './users.ts'

const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

interface Row {
  at: Date
  alias: string
  change: AliasChange['change']
  other: string | null
  person_id: string | null
  person_name: string | null
}

/** A place between two changes of one user; several happen in one millisecond. */
interface Position {
  atMs: number
  alias: string
  change: string
}

/** A page of what happened to the aliases of a user, newest first. Throws `not_found` for who has no identity. */
export async function listAliasChanges(
  sql: Queryable,
  projectId: string,
  reference: string,
  { cursor, limit = 50 }: AliasHistoryQuery,
): Promise<Page<AliasChange>> {
  const before = cursor === undefined ? undefined : parsePosition(cursor)
  if (cursor !== undefined && !before) {
    throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
  }
  const [user] = await sql<{ user_id: string }[]>`
    select user_id
    from identities
    where project_id = ${projectId} and user_id = ${resolveUser(sql, projectId, reference)}
  `
  if (!user) throw noUser()
  const rows = await sql<Row[]>`
    select h.at, h.alias, h.change, h.other, p.id as person_id, p.name as person_name
    from alias_changes h
      left join people p on p.id = h.person_id
    where h.project_id = ${projectId} and h.user_id = ${user.user_id}
      ${
        before
          ? sql`
              and h.at <= ${new Date(before.atMs)}
              and (h.at, h.alias, h.change) < (${new Date(before.atMs)}, ${before.alias}, ${before.change})
            `
          : sql``
      }
    order by h.at desc, h.alias desc, h.change desc
    limit ${limit + 1}
  `
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    items: page.map(toChange),
    nextCursor: rows.length > limit && last ? toCursor(last) : null,
  }
}

function toChange({ at, alias, change, other, person_id, person_name }: Row): AliasChange {
  return {
    at: at.toISOString(),
    alias,
    change,
    other,
    person: person_id === null ? null : { id: toId('per', person_id), name: person_name ?? '' },
  }
}

function toCursor({ at, alias, change }: Row): string {
  return Buffer.from(JSON.stringify([at.getTime(), alias, change])).toString('base64url')
}

/** The position in a cursor, or undefined when it is none of ours. */
function parsePosition(cursor: string): Position | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (!Array.isArray(value) || value.length !== 3) return undefined
    const [atMs, alias, change] = value as unknown[]
    const isOurs =
      Number.isSafeInteger(atMs) &&
      (atMs as number) >= 0 &&
      (atMs as number) <= LAST_MS &&
      typeof alias === 'string' &&
      typeof change === 'string' &&
      findBadText(alias + change) === undefined
    return isOurs
      ? { atMs: atMs as number, alias: alias as string, change: change as string }
      : undefined
  } catch {
    return undefined
  }
}
