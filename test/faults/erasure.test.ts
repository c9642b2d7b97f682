import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { toArray } from '../../src/database/arrays.ts'
import { listTraces } from '../support/traces.ts'
import { scaled, until } from '../support/until.ts'
import { backUp, makeBackupFolder } from '../support/worlds/backup.ts'
import { createRequests, type Answered, type RequestOptions } from '../support/worlds/project.ts'
import { startFleet, type Fleet } from './fleet.ts'
import { createRandom, newSeed } from './random.ts'

/** A part of each name. Long, because ids are random letters. */
const MARK = 'erased-user-'
/** The numbers of users. Aliases move around each ring. */
const RINGS = [...Array<number>(20).fill(2), 3, 3, 5]
const ALIASES = 20
/** The aliases of a ring that events and later identifies use. */
const USED = 3
const MOVES = 8
const KILLS = 4

interface Ring {
  users: string[]
  aliases: string[]
  /** Former aliases. */
  removed: string[]
}

const seed = newSeed()
const { pick } = createRandom(seed)

test(
  `contract §9 pairs and rings of users are erased by four processes, some of which are killed, and nothing is left (seed ${seed})`,
  async () => {
    const fleet = await startFleet({ servers: 4, projects: 1, workers: 1 })
    try {
      const rings: Ring[] = []
      for (const [nth, size] of RINGS.entries())
        rings.push(await createRing(fleet, `${nth % 2 ? 'quiet' : 'loud'}-${nth}`, size))
      const users = rings.flatMap(ring => ring.users)
      const names = rings
        .filter((_, nth) => nth % 2 === 0)
        .flatMap(({ aliases, removed }) => [...aliases.slice(0, USED), ...removed])
      expect(await listTraces(fleet.sql, MARK)).toContain('alias_changes')

      const traffic = startTraffic(
        fleet,
        rings.filter((_, nth) => nth % 2 === 0),
      )
      // Each process works through the rings in order, so the users of a ring are erased at once.
      const first = Promise.all(
        rings.flatMap(ring => ring.users.map((user, nth) => eraseToEnd(fleet, user, { nth }))),
      )
      for (let n = 0; n < KILLS; n++) {
        const index = n % fleet.programs.length
        await fleet.programs[index]?.kill('SIGKILL')
        await fleet.restart(index)
      }
      expect(await traffic.stop()).toBeGreaterThan(0)
      await first
      expect(await listTraces(fleet.sql, `${MARK}quiet`)).toEqual([])

      // The traffic has made users anew, also some with the name of an alias.
      await Promise.all(users.map(user => eraseToEnd(fleet, user)))
      await Promise.all(names.map(name => eraseToEnd(fleet, name, { others: [404] })))
      expect(await listTraces(fleet.sql, MARK)).toEqual([])
      using backup = makeBackupFolder()
      await backUp(fleet.databaseUrl, backup.file)
      const text = gunzipSync(readFileSync(backup.file))
      expect(text.length).toBeGreaterThan(1_000)
      expect(text.includes(MARK)).toBe(false)
    } finally {
      await fleet.close()
    }
  },
  scaled(240_000),
)

/**
 * Sends a request to a random server, or first to the nth, until one answers. Kills break
 * connections.
 */
async function request(
  fleet: Fleet,
  path: string,
  { nth, ...options }: RequestOptions & { nth?: number | undefined },
): Promise<Answered> {
  let url = nth === undefined ? pick(fleet.urls()) : fleet.urls()[nth % fleet.urls().length]!
  let answer: Answered | undefined
  await until(async () => {
    const { request: ask } = createRequests(url, fleet.projects[0]!.key)
    answer = await ask(path, options).catch(() => undefined)
    url = pick(fleet.urls())
    return answer !== undefined && answer.status !== 503
  }, scaled(120_000))
  return answer!
}

let keys = 0

function identify(fleet: Fleet, userId: string, aliases: string[]): Promise<Answered> {
  return post(fleet, '/v1/identify', { user_id: userId, aliases })
}

function send(fleet: Fleet, userId: string): Promise<Answered> {
  return post(fleet, '/v1/events', { channelName: 'ops', title: 'Hello', userId })
}

function post(fleet: Fleet, path: string, json: object): Promise<Answered> {
  const headers = { 'idempotency-key': `${keys++}` }
  return request(fleet, path, { method: 'POST', json, headers })
}

/** Erases a user, until the response is 200 or one of `others`. The nth server is asked first. */
async function eraseToEnd(
  fleet: Fleet,
  name: string,
  { nth, others = [] }: { nth?: number; others?: number[] } = {},
): Promise<void> {
  for (;;) {
    const { status, text } = await request(fleet, `/v1/users/${name}`, { method: 'DELETE', nth })
    if (status === 200 || others.includes(status)) return
    if (status !== 202) throw new Error(`${name}: ${status} ${text}`)
  }
}

/** Creates users with events under all their names, and moves their aliases around. */
async function createRing(fleet: Fleet, name: string, size: number): Promise<Ring> {
  const users = Array.from({ length: size }, (_, n) => `${MARK}${name}-${n}`)
  const ring: Ring = { users, aliases: [], removed: [] }
  for (const user of users) {
    const aliases = Array.from({ length: ALIASES }, (_, n) => `${user}-alias-${n}`)
    await identify(fleet, user, aliases)
    await identify(fleet, pick(users), aliases.slice(0, USED))
    for (const one of [user, aliases[0]!, aliases.at(-1)!]) await send(fleet, one)
    ring.removed.push(aliases.at(-1)!)
    ring.aliases.push(...aliases.slice(0, -1))
  }
  const projectId = fleet.projects[0]!.id
  await fleet.sql.begin(async tx => {
    await tx`select from event_logs where project_id = ${projectId} for update`
    await tx`
      with removed as (
        delete from aliases where project_id = ${projectId} and alias = any(${toArray(ring.removed)}::text[])
        returning alias, user_id
      )
      select record_alias_changes(
        project => ${projectId}, user_ids => array_agg(user_id), names => array_agg(alias),
        changes => array_agg('removed'::text), others => array_agg(null::text)
      )
      from removed
    `
    for (let move = 0; move < MOVES; move++)
      for (const [n, user] of users.entries()) {
        const own = ring.aliases.filter((_, at) => (at + move) % size === n)
        await tx`
          with moved as (
            update aliases a set user_id = ${user}
            from aliases former
            where a.project_id = ${projectId} and a.alias = any(${toArray(own)}::text[])
              and former.project_id = a.project_id and former.alias = a.alias and former.user_id <> ${user}
            returning a.alias, a.user_id, former.user_id as other
          ), changes as (
            select other as user_id, alias, 'moved to' as change, user_id as other from moved
            union all
            select user_id, alias, 'moved from', other from moved
          )
          select record_alias_changes(
            project => ${projectId}, user_ids => array_agg(user_id), names => array_agg(alias),
            changes => array_agg(change), others => array_agg(other)
          )
          from changes
          having count(*) > 0
        `
      }
  })
  return ring
}

/** Identifies users and sends events under their names, one after the other. */
function startTraffic(fleet: Fleet, rings: readonly Ring[]): { stop(): Promise<number> } {
  let isStopped = false
  let made = 0
  const ended = (async () => {
    while (!isStopped) {
      const { users, aliases, removed } = pick(rings)
      await identify(fleet, pick(users), [pick(aliases.slice(0, USED)), pick(removed)])
      await send(fleet, pick([...users, ...aliases.slice(0, USED), ...removed]))
      made++
    }
  })()
  return {
    async stop() {
      isStopped = true
      await ended
      return made
    },
  }
}
