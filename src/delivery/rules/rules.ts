import { writeAudit } from '../../access/audit/audit.ts'
import type { CallOn } from '../../access/guard/guard.ts'
import { lockProject } from '../../access/organizations/projects.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { invalidField } from '../../http/validation.ts'
import { findChannel, lockLog } from '../../log/channels/channels.ts'
import { LEVELS, toRank } from '../../log/channels/level.ts'
import { appendOwn } from '../../log/events/append.ts'
import { parseSearch } from '../../log/events/search-query.ts'
import { toSearchFilters } from '../../log/events/search-schema.ts'
import { THREAD } from './arrivals.ts'
import { begin } from './evaluate.ts'
import { readRule } from './rule-step.ts'
import type { NewRule, Rule } from './schema.ts'

const MAX_RULES = 20

type RuleCall = Pick<CallOn<'project'>, 'actor' | 'organizationId' | 'projectId'>

/**
 * Returns the search of a rule without white space around it. Throws `InvalidRequest`.
 */
export function checkRuleSearch(q: string): string {
  if (q.trim() === '') throw invalidField('q', 'required', 'Required')
  toSearchFilters({ q })
  // A preview would see other events than the rule did.
  if (parseSearch(q).terms.some(({ name }) => name === 'after' || name === 'before'))
    throw invalidField(
      'q',
      'invalid_value',
      'A rule looks at all times. Leave `after:` and `before:` out.',
    )
  return q.trim()
}

/**
 * Saves a rule, or changes the one with this id. It counts from now on, and the thread of a rule
 * that fired is resolved. Throws `InvalidRequest`, `not_found`, and `conflict` for one too many.
 */
export async function saveRule(tx: Tx, call: RuleCall, rule: NewRule, id?: string): Promise<Rule> {
  const { actor, organizationId, projectId } = call
  const search = checkRuleSearch(rule.q)
  await lockProject(tx, projectId)
  const channelId = await findChannel(tx, projectId, rule.channel)
  const uuid = id === undefined ? newId('rul').uuid : (await endRule(tx, call, id, 'changed')).id
  const [log] = await tx<[{ seq: string; n: number; atMs: number }]>`
    select
      l.last_seq as seq, extract(epoch from clock_timestamp())::float8 * 1000 as "atMs",
      (select count(*)::int from rules r where r.project_id = l.project_id and r.id <> ${uuid}) as n
    from log_of(${projectId}) l
  `
  if (log.n >= MAX_RULES)
    throw new Fault('conflict', `A project has at most ${MAX_RULES} rules. Delete one first.`)
  const condition = { moreThan: rule.moreThan, withinMs: rule.withinSeconds * 1000 }
  const state = JSON.stringify(begin(condition, log.atMs))
  await tx`
    insert into rules (
      project_id, id, channel_id, name, search, more_than, within_s, level, is_on, seq, state
    )
    values (
      ${projectId}, ${uuid}, ${channelId}, ${rule.name.trim()}, ${search}, ${rule.moreThan}, ${rule.withinSeconds},
      ${toRank(rule.level ?? 'high')}, ${rule.isOn ?? true}, ${log.seq}, ${state}::text::jsonb
    )
    on conflict (project_id, id) do update set
      channel_id = excluded.channel_id, name = excluded.name, search = excluded.search, more_than = excluded.more_than,
      within_s = excluded.within_s, level = excluded.level, is_on = excluded.is_on, seq = excluded.seq, state = excluded.state
  `
  // Its first step finds out when the next one is due.
  await tx`
    insert into outbox (project_id, event_id, kind, target_id)
    values (${projectId}, ${uuid}, 'timer', ${uuid})
    on conflict (project_id, event_id, kind, target_id) do update set available_at = now(), token = null
  `
  const action = id === undefined ? 'rule.created' : 'rule.edited'
  await writeAudit(tx, actor, { action, organizationId, projectId, target: toId('rul', uuid) })
  const { items } = await listRules(tx, projectId, uuid)
  return items[0]!
}

/** Deletes a rule, and resolves its thread. Throws `not_found`. */
export async function deleteRule(tx: Tx, call: RuleCall, id: string): Promise<void> {
  const { actor, organizationId, projectId } = call
  await lockProject(tx, projectId)
  const { id: uuid } = await endRule(tx, call, id, 'deleted')
  await tx`delete from rules where project_id = ${projectId} and id = ${uuid}`
  await writeAudit(tx, actor, { action: 'rule.deleted', organizationId, projectId, target: id })
}

/** Locks a rule, and resolves its thread if it fires. */
async function endRule(tx: Tx, { projectId }: RuleCall, id: string, what: string) {
  await lockLog(tx, projectId)
  const uuid = parseId('rul', id) ?? null
  const rule = await readRule(tx, { projectId, id: uuid }, tx`for update of r`)
  if (!rule) throw new Fault('not_found', 'No rule of this project has this id')
  if (rule.state.firingMs !== null) {
    await appendOwn(tx, rule, {
      title: `${rule.name}: the rule was ${what}`,
      thread: `${THREAD}${id}`,
      state: 'resolved',
      source: 'rule',
    })
  }
  return rule
}

/** Lists the rules of a project, newest first, or the one with this uuid. */
export async function listRules(
  sql: Queryable,
  projectId: string,
  id?: string,
): Promise<{ items: Rule[] }> {
  const rows = await sql<(Omit<Rule, 'level'> & { level: number })[]>`
    select
      r.id, r.name, c.public_id as "channelId", c.name as "channelName", r.search as q, r.more_than as "moreThan",
      r.within_s as "withinSeconds", r.level, r.is_on as "isOn",
      to_iso(to_timestamp((r.state ->> 'firingMs')::float8 / 1000)) as "firingSince", to_iso(r.created_at) as "createdAt"
    from rules r
      cross join lateral channel_by_id(r.project_id, r.channel_id) c
    where r.project_id = ${projectId} ${id ? sql`and r.id = ${id}` : sql``}
    order by r.id desc
  `
  const items = rows.map(row => ({
    ...row,
    id: toId('rul', row.id),
    level: LEVELS[row.level] ?? 'high',
  }))
  return { items }
}
