import type { Role } from '../../src/access/guard/permissions.ts'
import { createProject } from '../../src/access/organizations/projects.ts'
import { connect, type Sql } from '../../src/database/sql.ts'
import { newId, toId } from '../../src/base/ids.ts'
import { reindexUsers } from '../../src/log/identities/user-indexer.ts'
import { SCOPES } from '../../src/access/keys/schema.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newAccount, PASSWORD } from '../support/worlds/browser.ts'
import {
  newMember,
  newOrganization,
  type TestOrganization,
} from '../support/worlds/signed-in-account.ts'
import type { Attacker } from './fairness-attacks.ts'
import { VICTIM_PATH, type Victim } from './fairness-load.ts'
import { SHARE } from './table.ts'

/** Events of the attacker's log, and of the other organization's. */
const EVENTS = Math.ceil(120_000 * SHARE)
const EVENTS_OF_VICTIM = 20_000
/** The newest events of the attacker's log: each has a long text and large metadata. */
const LARGE_EVENTS = Math.ceil(3_000 * SHARE)
/** Users with about 300 events each. Each round of the erasures takes 64 others. */
const USERS = Math.ceil(EVENTS / 300)
const WEBHOOKS = 10
/** The channels of the attacker. */
const CHANNELS = Math.ceil(20_000 * SHARE)

/** Two organizations on one server. */
export interface World {
  victim: Victim
  /** Returns an attacker with new keys of the default limit and all scopes. */
  newAttacker(round: number): Promise<Attacker>
  close(): Promise<void>
}

/** Fills a database with two organizations, before its server starts. */
export async function fillWorld(databaseUrl: string) {
  const sql = connect(databaseUrl, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  const [victim, attacker] = [await newOrganization({ sql }), await newOrganization({ sql })]
  await fillLog(sql, victim.project.uuid, { events: EVENTS_OF_VICTIM, large: 0 })
  await fillLog(sql, attacker.project.uuid, { events: EVENTS, large: LARGE_EVENTS })
  await sql`
    insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    select ${attacker.project.uuid}, 'user_' || u, gen_random_uuid(), 'idn_' || u, '{}', now(), now()
    from generate_series(0, ${USERS - 1}::int) as g (u)
  `
  await reindexUsers(sql, attacker.project.uuid)
  await sql`
    insert into channels (project_id, id, public_id, slug, name, name_slug, created_at)
    select
      ${attacker.project.uuid}, gen_random_uuid(), 'chn_' || n, 'first ' || n, 'later ' || n, 'later ' || n, now()
    from generate_series(1, ${CHANNELS}::int) as g (n)
  `
  const hooks = await sql.begin(tx =>
    createProject(tx, { organizationId: attacker.uuid, name: 'Webhooks' }),
  )
  await sql.unsafe('vacuum analyze')
  return { sql, victim, attacker, hooks }
}

/** Makes accounts, sessions and webhooks on a running server. */
export async function openWorld(
  { sql, victim, attacker, hooks }: Awaited<ReturnType<typeof fillWorld>>,
  url: string,
  receiverUrl: string,
): Promise<World> {
  const join = (organization: TestOrganization, role: Role) =>
    newMember({ sql, url }, organization, role)
  const cookies = [(await join(attacker, 'viewer')).cookie, (await join(attacker, 'viewer')).cookie]
  const admin = await join(attacker, 'admin')
  for (let made = 0; made < WEBHOOKS; made++) {
    const { status, text } = await admin.post(`/api/projects/${toId('prj', hooks)}/webhooks`, {
      url: `${receiverUrl}/${made}`,
    })
    if (status !== 201) throw new Error(`No webhook: ${text}`)
  }
  const owner = await join(victim, 'admin')
  const hook = { url: receiverUrl + VICTIM_PATH }
  const made = await owner.post(`/api/projects/${victim.project.id}/webhooks`, hook)
  if (made.status !== 201) throw new Error(`No webhook: ${made.text}`)
  // All scopes, because the default ones do not include erasures.
  const newKey = async (projectId: string, limit?: number) =>
    (await createKey(sql, { projectId, name: 'bench', scopes: SCOPES, ...(limit && { limit }) }))
      .token
  return {
    victim: {
      url,
      key: await newKey(victim.project.uuid, 1_000_000_000),
      cookie: (await join(victim, 'viewer')).cookie,
      project: victim.project.id,
      email: (await newAccount({ sql }, { isCostly: true })).email,
      password: PASSWORD,
      receiver: receiverUrl,
    },
    newAttacker: async round => ({
      url,
      round,
      project: attacker.project.id,
      key: await newKey(attacker.project.uuid),
      hooksKey: await newKey(hooks),
      cookies,
    }),
    close: () => sql.end(),
  }
}

/** Every event has two words that all events have; the newest `large` ones have much text. */
async function fillLog(
  sql: Sql,
  projectId: string,
  { events, large }: { events: number; large: number },
): Promise<void> {
  const channel = newId('chn')
  await sql`
    insert into channels (project_id, id, public_id, slug, name, created_at)
    values (${projectId}, ${channel.uuid}, ${channel.id}, 'payments', 'payments', now())
  `
  await sql`
    insert into events (
      project_id, id, channel_id, seq, occurred_at, created_at, title, description, tags, metadata, user_ref, source,
      notify
    )
    select
      ${projectId}, gen_random_uuid(), ${channel.uuid}, n, at, at, 'alpha payment ' || n,
      case
        when n > ${events - large} then
          (select string_agg('word' || (n * 31 + w * 17) % 9973, ' ') from generate_series(1, 480) as g (w))
        else 'omega of a customer who paid for a plan'
      end,
      '{billing}',
      case
        when n > ${events - large} then
          (select '{' || string_agg('"field' || f || '":"value of a field ' || f || '"', ',') || ',"plan":"pro"}'
            from generate_series(1, 1500) as g (f))::json
        else '{"plan":"pro","amount":42}'
      end,
      'user_' || n % ${USERS}, 'api', true
    from (
      select n, now() - (${events} - n) * interval '20 seconds' as at from generate_series(1, ${events}::int) as g (n)
    ) rows
  `
  await sql`update event_logs set last_seq = ${events} where project_id = ${projectId}`
  await sql`
    insert into event_counts (project_id, hour, channel_id, n)
    select project_id, hour_of(occurred_at), channel_id, count(*)
    from events where project_id = ${projectId} group by 1, 2, 3
  `
  await sql`
    insert into event_segments (project_id, segment, first_at, last_at)
    select project_id, seq >> 12, min(hour_of(occurred_at)), max(hour_of(occurred_at)) + interval '1 hour'
    from events where project_id = ${projectId} group by 1, 2
  `
}
