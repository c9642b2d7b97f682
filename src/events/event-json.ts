import { toId } from '../ids.ts'

/** An event with its channel and user, as reads select it. */
export interface EventRow {
  id: string
  seq: string
  channel_public_id: string
  channel_name: string
  user_id: string | null
  occurred_at: Date
  created_at: Date
  title: string
  description: string | null
  icon: string | null
  tags: string
  metadata: string
  source: string
  notify: boolean
}

/** The same fields in the same order as in the answer to its creation (draft.ts). */
export function toEventJson(row: EventRow): string {
  return (
    `{"id":"${toId('evt', row.id)}","seq":${row.seq},"channelId":"${row.channel_public_id}"` +
    `,"channelName":${JSON.stringify(row.channel_name)},"userId":${JSON.stringify(row.user_id)}` +
    `,"timestamp":"${row.occurred_at.toISOString()}","createdAt":"${row.created_at.toISOString()}"` +
    `,"title":${JSON.stringify(row.title)},"description":${JSON.stringify(row.description)}` +
    `,"icon":${JSON.stringify(row.icon)},"tags":${row.tags},"metadata":${row.metadata}` +
    `,"source":${JSON.stringify(row.source)},"notify":${row.notify}}`
  )
}
