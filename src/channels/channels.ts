import type { Queryable } from '../db/sql.ts'
import { Fault } from '../errors.ts'
import type { Page } from '../http/envelope.ts'
import { toPage, toSlice, type PageQuery } from '../http/paging.ts'
import { parseId } from '../ids.ts'
import type { Channel } from './schema.ts'

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
  query: PageQuery,
): Promise<Page<Channel>> {
  const { after, rows: limit } = toSlice('chn', query)
  // Ids are made in the order of time (uuid version 7).
  const rows = await sql<Row[]>`
    select public_id, name, icon, created_at
    from channels
    where project_id = ${projectId} ${after ? sql`and id < ${after}` : sql``}
    order by id desc
    limit ${limit}
  `
  return toPage(rows.map(toChannel), query, ({ id }) => id)
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
