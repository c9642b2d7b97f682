import { setTimeout as sleep } from 'node:timers/promises'
import { toId } from '../../src/base/ids.ts'
import { scaled } from '../support/until.ts'
import { newMember } from '../support/worlds/signed-in-account.ts'
import type { RemovedEvents, RunResult } from './ledger-check.ts'
import type { Fleet } from './fleet.ts'
import { startFollower, type Follower } from './follower.ts'
import type { Random } from './random.ts'

const CATCH_UP_MS = scaled(30_000)
const FOLLOWERS = 12

export async function startFollowers(
  fleet: Fleet,
  random: Random,
  { hasPromotions = false } = {},
): Promise<Follower[]> {
  const followers: Follower[] = []
  for (let nth = 0; nth < FOLLOWERS; nth++) {
    const { id } = fleet.projects[nth % fleet.projects.length]!
    const [row] = await fleet.sql<[{ organization_id: string }]>`
      select organization_id from projects where id = ${id}
    `
    const account = await newMember(
      { sql: fleet.sql, url: '' },
      { uuid: row.organization_id },
      'viewer',
    )
    // A third starts now, a third at the beginning, and a third has a filter.
    followers.push(
      startFollower({
        name: `follower ${nth}`,
        projectId: id,
        project: toId('prj', id),
        cookie: account.cookie,
        after: nth % 2 === 0 ? undefined : random.below(10),
        ...(nth % 3 === 2 && { channelName: `Channel ${nth % 2}` }),
        servers: fleet.urls,
        hasPromotions,
        random: random.fork(1_000 + nth),
      }),
    )
  }
  return followers
}

/**
 * Compares each follower's events with the log, once they caught up. Events deleted unseen may be
 * missing.
 */
export async function checkFollowers(
  { sql }: Pick<Fleet, 'sql'>,
  followers: readonly Follower[],
  leavers: RemovedEvents = new Map(),
): Promise<RunResult> {
  const problems: string[] = []
  let compared = 0
  for (const follower of followers) {
    const { name, projectId, channelName, from = 0, seen } = follower
    const rows = await sql<{ seq: number; id: string }[]>`
      select e.seq::int as seq, e.id
      from events e
        join channels c on c.project_id = e.project_id and c.id = e.channel_id
      where e.project_id = ${projectId} and e.seq > ${from}
        ${channelName === undefined ? sql`` : sql`and c.name = ${channelName}`}
      order by e.seq
    `
    const there = new Set(rows.map(({ id }) => id))
    const gone = [...leavers.values()].filter(
      one =>
        one.projectId === projectId &&
        one.seq > from &&
        !there.has(one.id) &&
        (channelName === undefined || one.channelName === channelName),
    )
    const log = new Map([...rows, ...gone].map(({ seq, id }) => [seq, id]))
    const last = rows.at(-1)?.seq ?? from
    const deadlineMs = performance.now() + CATCH_UP_MS
    while (follower.cursor < last && performance.now() < deadlineMs) await sleep(50)
    problems.push(...follower.problems)

    const met = new Set<number>()
    let [twice, disordered, strangers, head] = [0, 0, 0, 0]
    for (const { seq, id } of seen) {
      if (met.has(seq)) twice++
      else if (seq < head) disordered++
      const stored = log.get(seq)
      if (stored === undefined || toId('evt', stored) !== id) strangers++
      met.add(seq)
      head = Math.max(head, seq)
    }
    const gaps = [...log].filter(
      ([seq, id]) => !met.has(seq) && (leavers.get(id)?.isDone ?? true),
    ).length
    const broken = { gaps, 'out of order': disordered, twice, strange: strangers }
    for (const [what, times] of Object.entries(broken))
      if (times > 0)
        problems.push(`${name}, ${what}: ${times} of ${log.size}, up to ${follower.cursor}`)
    compared += log.size
  }
  const delays = followers.flatMap(({ delaysMs }) => delaysMs).sort((a, b) => a - b)
  const at = (share: number) => delays[Math.floor(share * (delays.length - 1))] ?? NaN
  return {
    figures: {
      followers: followers.length,
      connects: followers.reduce((sum, { connects }) => sum + connects, 0),
      'events compared': compared,
      'delay p50 ms': at(0.5),
      'delay p99 ms': at(0.99),
      'slowest delay ms': at(1),
    },
    problems,
  }
}
