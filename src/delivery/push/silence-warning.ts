import type { Pool } from '../../database/pool.ts'
import type { DeliveryAttempt, DeliveryOutcome } from '../outbox/delivery-kind.ts'
import { toSilenceMessage, type EndingSilence, type PushMessage } from './payload.ts'
import type { PushTarget } from './target.ts'

/** Returns the message that a silence ends soon, or why there is none. Its id is `eventId`. */
export async function toSilenceWarning(
  pool: Pool,
  { eventId: id, targetId }: DeliveryAttempt,
  { target: { withheld }, siteUrl }: { target: PushTarget; siteUrl: string },
): Promise<PushMessage | DeliveryOutcome> {
  if (withheld !== undefined) return { kind: 'withheld', reason: withheld }
  const [silence] = await pool.run(
    sql => sql<EndingSilence[]>`
      select
        s.id, s.project_id as "projectId", p.name as project, c.name as channel, s.thread,
        extract(epoch from s.ends_at - now())::float8 as "leftS", f.firing
      from push_subscriptions d
        join sessions e on e.id = d.session_id
        join silences s on s.id = ${id} and s.ends_at > now()
        join projects p on p.id = s.project_id and p.deleted_at is null
        join organizations o on o.id = p.organization_id and o.deleted_at is null
        join memberships m on m.organization_id = o.id and m.account_id = d.account_id
        left join lateral channel_by_id(s.project_id, s.channel_id) c on true
        cross join lateral (
          select count(*)::int as firing
          from open_threads(s.project_id, s.id) t
          where t.state = 3
        ) f
      where d.id = ${targetId} and f.firing > 0
        and not lacks_second_factor(o.requires_second_factor, e.is_multi_factor)
    `,
  )
  return silence
    ? toSilenceMessage(siteUrl, silence)
    : { kind: 'withheld', reason: 'Nothing in the silence fires any more' }
}
