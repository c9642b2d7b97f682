import { setTimeout as sleep } from 'node:timers/promises'
import { toId } from '../../src/base/ids.ts'
import { createApi, newMember } from '../support/worlds/signed-in-account.ts'
import type { RemovedEvent } from './ledger-check.ts'
import type { Fleet } from './fleet.ts'
import type { Random } from './random.ts'

const GAP_MS = 400
/** Less than the undo time of a deletion, for a machine that is not overloaded. */
const UNDO_MS = 4_000

/** Deletes and restores single events. */
export interface Deletions {
  stop(): Promise<void>
  figures(): Record<string, number>
}

/** Has an admin delete events of these projects through any server, and restore every other one. */
export async function startDeletions(
  { sql, urls }: Fleet,
  {
    projectIds,
    random,
    leavers,
  }: { projectIds: readonly string[]; random: Random; leavers: Map<string, RemovedEvent> },
): Promise<Deletions> {
  const cookies = new Map<string, string>()
  for (const id of projectIds) {
    const [row] = await sql<[{ organization_id: string }]>`
      select organization_id from projects where id = ${id}
    `
    const admin = await newMember({ sql, url: '' }, { uuid: row.organization_id }, 'admin')
    cookies.set(id, admin.cookie)
  }
  let deleted = 0
  let restored = 0
  let isStopped = false

  /** The outcome of a request is known only if it was answered. */
  async function ask(leaver: RemovedEvent, method: 'DELETE' | 'POST'): Promise<boolean> {
    const { request } = createApi(random.pick(urls()), cookies.get(leaver.projectId))
    const path = `/api/projects/${toId('prj', leaver.projectId)}/events/${toId('evt', leaver.id)}`
    const answer = await request(method === 'POST' ? `${path}/restore` : path, { method }).catch(
      () => undefined,
    )
    return answer?.status === 200
  }

  async function run(): Promise<void> {
    for (let nth = 0; !isStopped; nth++) {
      await sleep(random.below(GAP_MS))
      const event = await findOne(random.pick(projectIds), random.next())
      if (!event || leavers.has(event.id)) continue
      const leaver: RemovedEvent = { ...event, isDone: false, fate: 'unknown' }
      leavers.set(leaver.id, leaver)
      const isDeleted = await ask(leaver, 'DELETE')
      if (isDeleted) deleted++
      if (nth % 2 === 0) {
        if (isDeleted) leaver.fate = 'gone'
        continue
      }
      await sleep(random.below(UNDO_MS))
      if (!(await ask(leaver, 'POST'))) continue
      restored++
      if (isDeleted) leaver.fate = 'there'
    }
  }

  async function findOne(projectId: string, share: number) {
    const rows = await sql<Omit<RemovedEvent, 'isDone' | 'fate'>[]>`
      select
        e.project_id as "projectId", e.id, e.seq::int as seq, e.metadata ->> 'intent' as intent,
        c.name as "channelName"
      from event_logs l
        join events e on e.project_id = l.project_id and e.seq > floor(${share}::float8 * l.last_seq)
        join channels c on c.project_id = e.project_id and c.id = e.channel_id
      where l.project_id = ${projectId} and e.deleted_at is null
      order by e.seq
      limit 1
    `.catch(() => []) // Postgres may be down.
    return rows[0]
  }

  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
    },
    figures: () => ({ 'deleted by hand': deleted, 'brought back': restored }),
  }
}
