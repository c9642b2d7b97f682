import type { Config } from '../../config.ts'
import type { Sql } from '../../db/sql.ts'
import { parseVapidSubject } from '../../config/vapid-subject.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const LATE_S = 60
const VERY_LATE_S = 3_600

/** What waits to be delivered, for how long what is due has waited, and what was given up. */
export async function checkQueue(sql: Sql): Promise<Finding[]> {
  const [row] = await sql<[{ pending: number; late_s: number; dead: number }]>`
    select
      count(*)::int as pending,
      greatest(0, coalesce(extract(epoch from now() - min(available_at)), 0))::int as late_s,
      (select count(*)::int from dead_letters where at > now() - interval '1 day') as dead
    from outbox
  `
  const { pending, late_s: lateS, dead } = row
  const waiting = `${pending} deliveries wait`
  const remedy = 'see that a server runs, and what its log says'
  const queue =
    lateS <= LATE_S
      ? ok('queue', `${waiting}, none of them late`)
      : (lateS <= VERY_LATE_S ? warning : failed)(
          'queue',
          `${waiting}, the oldest has been due for ${lateS} s: ${remedy}`,
        )
  if (dead === 0) return [queue]
  const message = `${dead} deliveries were given up in a day: look at the webhooks' attempts, and replay them`
  return [queue, warning('dead letters', message)]
}

/** Whether push services will take what we send: they want to know who answers for it. */
export async function checkPush(
  sql: Sql,
  { vapidSubject }: Pick<Config, 'vapidSubject'>,
): Promise<Finding[]> {
  const [row] = await sql<[{ has_key: boolean; email: string | null }]>`
    select
      exists (select from vapid_keys) as has_key,
      (select email from people where is_operator order by created_at, id limit 1) as email
  `
  const key = row.has_key
    ? ok('push keys', 'there is one')
    : ok('push keys', 'none yet: one is made when it is needed')
  const subject =
    vapidSubject ?? (row.email === null ? undefined : parseVapidSubject(`mailto:${row.email}`))
  return [
    key,
    subject === undefined
      ? warning(
          'push subject',
          'nobody answers for this server at push services, and some of them refuse that: set VAPID_SUBJECT to mailto: and your address',
        )
      : ok('push subject', subject),
  ]
}
