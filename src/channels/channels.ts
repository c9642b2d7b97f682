import type { Queryable } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import { invalidField } from '../http/validation.ts'
import { parseId } from '../ids.ts'
import type { Page } from '../http/envelope.ts'
import type { Channel, ChannelQuery } from './schema.ts'

interface Row {
  public_id: string
  name: string
  icon: string | null
  created_at: Date
}

/** A page of the project's channels, newest first. */
export async function listChannels(
  sql: Queryable,
  projectId: string,
  { cursor, limit = 50 }: ChannelQuery,
): Promise<Page<Channel>> {
  const before = parseChannelCursor(cursor)
  // Ids are made in the order of time (uuid version 7).
  const rows = await sql<Row[]>`
    select public_id, name, icon, created_at
    from channels
    where project_id = ${projectId} ${before ? sql`and id < ${before}` : sql``}
    order by id desc
    limit ${limit + 1}
  `
  const items = rows.slice(0, limit).map(toChannel)
  return { items, nextCursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}

/** The uuid to go on from; undefined for the first page. */
export function parseChannelCursor(cursor: string | undefined): string | undefined {
  const before = cursor === undefined ? undefined : parseId('chn', cursor)
  if (cursor !== undefined && before === undefined) {
    throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
  }
  return before
}

/** The uuid in a channel's id. Throws `not_found`. */
export function toChannelUuid(id: string): string {
  const uuid = parseId('chn', id)
  if (!uuid) throw noChannel()
  return uuid
}

export function noChannel(): Fault {
  return new Fault('not_found', 'No channel of this project has this id')
}

function toChannel({ public_id, name, icon, created_at }: Row): Channel {
  return { id: public_id, name, icon, createdAt: created_at.toISOString() }
}
