import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readErasedFile, toErasedFile } from '../../src/log/identities/erased-file.ts'
import type { Sql } from '../../src/database/sql.ts'
import { newProject, type Answered, type TestProject } from '../support/worlds/project.ts'
import { SCRATCH } from '../support/scratch.ts'
import {
  hasCommitted,
  isOfExecution,
  sweep,
  type Failure,
  type Transaction,
} from '../support/sweep.ts'
import { openLanes, type ServerLane } from '../support/sweep-lanes.ts'
import { listTraces } from '../support/traces.ts'
import { scaled, until } from '../support/until.ts'

let lanes: ServerLane[]
beforeAll(async () => {
  lanes = await openLanes(2)
  for (const { sql } of lanes) await makeErasuresTwoSteps(sql)
})
afterAll(() => Promise.all(lanes.map(lane => lane.close())))

/**
 * Replaces the time limit of a step, which depends on how busy the machine is. The first step ends
 * after one event of two, and the second one with the erasure.
 */
async function makeErasuresTwoSteps(sql: Sql): Promise<void> {
  const [row] = await sql<[{ text: string }]>`
    select pg_get_functiondef('continue_erasure'::regproc) as text
  `
  const replaced = [
    ['clock_timestamp() < ends_at', '(erasure.events = 0 or is_second)'],
    ['erasure.last_seq, 200)', 'erasure.last_seq, 1)'],
    ['erased int;', 'erased int;\nis_second boolean;'],
    ['while erasure.stage', 'is_second := erasure.events > 0;\nwhile erasure.stage'],
  ] as const
  let { text } = row
  for (const [before, after] of replaced) {
    if (!text.includes(before)) throw new Error(`continue_erasure lacks ${before}`)
    text = text.replace(before, after)
  }
  await sql.unsafe(text)
}

interface Subject {
  lane: ServerLane
  project: TestProject
  /** The answer to the first request of the transaction. */
  first?: Answered
}

const ADA = { user_id: 'ada', properties: { city: 'London' }, aliases: ['@ada', 'countess'] }

const identify = ({ project }: Subject) =>
  project.post('/v1/identify', ADA, { 'idempotency-key': 'swept' })

const IDENTIFY: Transaction<ServerLane, Subject> = {
  async prepare(lane) {
    const project = await newProject(lane)
    const before = { user_id: 'bob', aliases: ['@before'] }
    await project.post('/v1/identify', before, { 'idempotency-key': 'before' })
    return { lane, project }
  },
  belongs: ({ application }) => ['tidings admission', 'tidings identify'].includes(application),
  async run(subject) {
    subject.first = await identify(subject)
  },
  async check(subject, failure) {
    const { first } = subject
    const problems = checkFirst(first, 200, failure)
    const isStored = await hasProperties(subject)
    const isCommitted = hasCommitted(failure, 'write_identities(')
    if (first?.status !== 200 && isStored !== isCommitted)
      problems.push(`${first?.status}, and stored is ${isStored}`)
    const again = await identify(subject)
    const last = await identify(subject)
    problems.push(...[again, last].flatMap(one => checkFirst(one, 200, undefined)))
    if (again.headers.has('x-idempotent-replay') !== isStored) problems.push('a wrong replay')
    const texts = [again, last, ...(first?.status === 200 ? [first] : [])].map(one => one.text)
    if (new Set([...texts, await readAnswer(subject)]).size > 1) problems.push('other answers')
    return [...problems, ...(await checkUser(subject))]
  },
}

/** Returns problems of an answer that is neither the expected one nor `unavailable`. */
function checkFirst(
  answer: Answered | undefined,
  expected: number,
  failure: Failure | undefined,
): string[] {
  const statuses = [
    expected,
    ...(failure ? [503] : []),
    ...(failure?.way === 'refused' ? [500] : []),
  ]
  return statuses.includes(answer?.status ?? 0)
    ? []
    : [`answered ${answer?.status} ${answer?.text}`]
}

async function hasProperties({ lane, project }: Subject): Promise<boolean> {
  const rows = await lane.sql`
    select from identities
    where project_id = ${project.id} and user_id = 'ada' and properties ->> 'city' = 'London'
  `
  return rows.count > 0
}

/** Returns the stored answer to the request with the key. */
async function readAnswer({ lane, project }: Subject): Promise<string | undefined> {
  const [row] = await lane.sql<{ body: string }[]>`
    select body from idempotency_keys where project_id = ${project.id} and key = 'swept'
  `
  return row?.body
}

/** Compares the user with what the requests asked for. */
async function checkUser({ lane, project }: Subject): Promise<string[]> {
  const aliases = ADA.aliases.toSorted()
  const [row] = await lane.sql<[{ users: number; aliases: string[]; changes: string[] }]>`
    select
      (select count(*)::int from identities where project_id = ${project.id} and user_id = 'ada') as users,
      to_json(array(
        select alias from aliases where project_id = ${project.id} and user_id = 'ada' order by alias collate "C"
      )) as aliases,
      to_json(array(
        select alias from alias_changes
        where project_id = ${project.id} and user_id = 'ada' and change = 'added'
        order by alias collate "C"
      )) as changes
  `
  const expected = { users: 1, aliases, changes: aliases }
  return Bun.deepEquals({ ...row }, expected) ? [] : [`the user is ${JSON.stringify(row)}`]
}

test('contract §3 an identify is stored once or not at all, whichever message fails', async () => {
  const { messages, problems } = await sweep(lanes, IDENTIFY)
  expect(problems).toEqual([])
  expect(messages).toHaveLength(14)
})

/** Erases a user with an alias, two events, and stored answers. */
interface Erasing extends Subject {
  /** A part of each name of the user. It begins with `MARK`. */
  mark: string
}

/** Long, because ids are random letters. */
const MARK = 'erased-user-'

let erasings = 0

/** Statements of the loops that share the connections with the erasure. */
const OF_LOOPS = /index_users|list_unindexed_projects|with stale as|group by erased_user_id/

/** Statements of the two steps of an erasure. */
const OF_STEPS = /^(begin|commit)|continue_erasure|insert into audit_log/

/** Fails in the steps of an erasure, or in what comes before and after them. */
const toErasure = (isOfSteps: boolean): Transaction<ServerLane, Erasing> => ({
  async prepare(lane) {
    const project = await newProject(lane)
    const mark = `${MARK}${erasings++}-`
    const user = { user_id: `${mark}user`, aliases: [`${mark}alias`], properties: { name: mark } }
    const posts: [path: string, body: object][] = [
      ['/v1/identify', user],
      ['/v1/events', { channelName: 'ops', title: 'One', userId: `${mark}user` }],
      ['/v1/events', { channelName: 'ops', title: 'Two', userId: `${mark}alias` }],
    ]
    for (const [nth, [path, body]] of posts.entries()) {
      const headers = { 'idempotency-key': `key ${nth}` }
      await until(async () => (await project.post(path, body, headers)).status < 300)
    }
    return { lane, project, mark }
  },
  belongs: passing =>
    // The sweep of an append fails in the admission of a request.
    passing.application === 'tidings users' &&
    !OF_LOOPS.test(passing.statement) &&
    OF_STEPS.test(passing.statement.trim()) === isOfSteps &&
    isOfExecution(passing),
  async run(subject) {
    subject.first = await erase(subject)
  },
  async check(subject, failure) {
    const { lane, project, first, mark } = subject
    // On a busy machine the answer does not wait for the end.
    const problems = first?.status === 202 ? [] : checkFirst(first, 200, failure)
    const [left] = await lane.sql<[{ identities: number; aliases: number }]>`
      select
        (select count(*)::int from identities where project_id = ${project.id} and user_id = ${`${mark}user`}) as identities,
        (select count(*)::int from aliases where project_id = ${project.id} and user_id = ${`${mark}user`}) as aliases
    `
    const hasBegun =
      isOfSteps ||
      [200, 202].includes(first?.status ?? 0) ||
      hasCommitted(failure, 'begin_erasure(')
    const there = hasBegun ? 0 : 1
    if (left.identities !== there || left.aliases !== there)
      problems.push(`${first?.status}, and ${JSON.stringify(left)} are left`)
    let last = first
    await until(async () => {
      if (last?.status !== 200) last = await erase(subject)
      return last.status === 200
    })
    if (last) problems.push(...(await checkErased(subject, last)))
    return problems
  },
})

function erase({ project, mark }: Erasing): Promise<Answered> {
  return project.request(`/v1/users/${mark}user`, { method: 'DELETE' })
}

/** Checks that an erasure is complete, and that it happened once. */
async function checkErased({ lane, project }: Erasing, answer: Answered): Promise<string[]> {
  const problems: string[] = []
  const [row] = await lane.sql<[Record<string, unknown>]>`
    select
      to_json(array(select user_ref from events where project_id = ${project.id} order by seq)) as users,
      (select count(*)::int from erasures where project_id = ${project.id}) as running,
      to_json(array(select events::int from erased_users where project_id = ${project.id})) as erased,
      (select count(*)::int from erased_names where project_id = ${project.id}) as names,
      to_json(array(
        select details ->> 'events' from audit_log where project_id = ${project.id} and action = 'user.erased'
      )) as audited
  `
  const expected = {
    users: [null, null],
    running: 0,
    erased: [2],
    names: 2,
    audited: ['2'],
  }
  if (!Bun.deepEquals({ ...row }, expected)) problems.push(`stored is ${JSON.stringify(row)}`)
  if (answer.body.data.events !== 2) problems.push(`answered ${answer.text}`)
  const listed = new Set<string>()
  for await (const name of readErasedFile(toErasedFile(SCRATCH)))
    if (name.projectId === project.id) listed.add(name.hash)
  if (listed.size !== 2) problems.push(`the file has ${listed.size} names`)
  return problems
}

/** The databases hold nothing of any erased user. */
async function expectNoTraces(): Promise<void> {
  for (const { sql } of lanes) expect(await listTraces(sql, MARK)).toEqual([])
}

test(
  'contract §9 an erasure that is repeated is complete, whichever message around its steps fails',
  async () => {
    const { messages, problems } = await sweep(lanes, toErasure(false))
    expect(problems).toEqual([])
    await expectNoTraces()
    expect(messages).not.toContain('client Q')
  },
  scaled(120_000),
)

test('contract §9 an erasure of two steps that is repeated is complete, whichever message of them fails', async () => {
  const { messages, problems } = await sweep(lanes, toErasure(true))
  expect(problems).toEqual([])
  await expectNoTraces()
  // Each step is a transaction.
  expect(messages.filter(one => one === 'client Q')).toHaveLength(2)
})
