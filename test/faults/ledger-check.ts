import type { Sql } from '../../src/database/sql.ts'
import { toArray } from '../../src/database/arrays.ts'
import { toId } from '../../src/base/ids.ts'
import { compareIndex } from '../support/search-index.ts'
import type { Intent, Ledger } from './ledger.ts'

/** The result of a run: figures, and every broken promise. */
export interface RunResult {
  figures: Record<string, number | string>
  problems: string[]
}

/** An event that a run deletes or tries to delete; recorded beforehand. */
export interface RemovedEvent {
  projectId: string
  /** The uuid. */
  id: string
  seq: number
  intent: string
  channelName: string
  /**
   * True if all followers had seen it and it was delivered before; otherwise it may be missing
   * there.
   */
  isDone: boolean
  /** The expected outcome, as far as the run knows it. */
  fate: 'gone' | 'there' | 'unknown'
}

/** By the uuid. */
export type RemovedEvents = ReadonlyMap<string, RemovedEvent>

interface Stored {
  id: string
  seq: number
  created_at_us: string
  intent: string | null
}

interface Answered {
  data: { id: string; seq: number; title: string; metadata: { intent: string } }
}

/** Compares the answers to clients with the database. The ledger's load must have ended. */
export async function checkLedger(
  sql: Sql,
  projectIds: readonly string[],
  { intents, outcomes, slowestMs, unexpected }: Ledger,
  leavers: RemovedEvents = new Map(),
): Promise<RunResult> {
  const problems = unexpected.map(answer => `a client was answered ${answer}`)
  const stored = new Map<string, Stored[]>()
  let events = 0
  for (const projectId of projectIds) {
    const { rows, left, problems: found } = await readWhole(sql, projectId, leavers)
    problems.push(...found)
    events += rows.length
    problems.push(...(await checkLog(sql, projectId, { rows, left })))
    problems.push(...(await checkSearchIndex(sql, projectId)))
    for (const row of rows) {
      const intent = intents.get(row.intent ?? '')
      if (intent?.projectId !== projectId) problems.push(`nobody sent the event ${row.seq}`)
      const name = row.intent ?? ''
      stored.set(name, [...(stored.get(name) ?? []), row])
    }
  }
  const bodies = await readAnswers(sql, projectIds)
  for (const intent of intents.values()) {
    const rows = stored.get(intent.name) ?? []
    const isRemoved = rows.some(({ id }) => leavers.has(id))
    problems.push(...checkIntent(intent, rows, { bodies, isRemoved }))
  }
  const all = [...intents.values()]
  const unknown = all.filter(({ acknowledged }) => acknowledged.length === 0)
  return {
    figures: {
      intents: all.length,
      acknowledged: all.filter(({ acknowledged }) => acknowledged.length > 0).length,
      events,
      lost: all.filter(one => one.acknowledged.length > 0 && !stored.has(one.name)).length,
      keys: all.filter(({ key }) => key !== undefined).length,
      replays: all.reduce((sum, { replays }) => sum + replays, 0),
      'never answered 201': unknown.length,
      'of those stored': unknown.filter(({ name }) => stored.has(name)).length,
      'slowest answer ms': Math.round(slowestMs),
      answers: [...outcomes].map(([outcome, times]) => `${outcome}: ${times}`).join(', '),
    },
    problems,
  }
}

/** Checks that the search index has every word of the events up to its cursor. */
async function checkSearchIndex(sql: Sql, projectId: string): Promise<string[]> {
  const { missing, badParts } = await compareIndex(sql, projectId)
  return [
    ...missing.slice(0, 10).map(token => `the search index lacks ${token}`),
    ...badParts.map(part => `the part ${part} of the search index is out of place`),
  ]
}

/** Returns whether an answer is the other one without the content of its event. */
function isEmptied(emptied: string, text: string): boolean {
  const [one, other] = [JSON.parse(emptied), JSON.parse(text)] as [Answered, Answered]
  const isSame = one.data.id === other.data.id && one.data.seq === other.data.seq
  return isSame && one.data.title === '' && Object.keys(one.data.metadata).length === 0
}

function checkIntent(
  { name, key, sent, acknowledged, replays }: Intent,
  rows: Stored[],
  { bodies, isRemoved }: { bodies: ReadonlyMap<string, string>; isRemoved: boolean },
): string[] {
  const problems: string[] = []
  // The answer to an event that was deleted loses its content.
  const isAnswer = (other: string | undefined, text: string) =>
    other === text || (isRemoved && other !== undefined && isEmptied(other, text))
  const [text] = acknowledged
  if (rows.length > 1) problems.push(`${name} made ${rows.length} events in ${sent} requests`)
  if (text === undefined) return problems
  const [row] = rows
  if (!row) return [...problems, `${name} was acknowledged and is LOST: ${text}`]
  const { data } = JSON.parse(text) as Answered
  const isSame = data.id === toId('evt', row.id) && data.seq === row.seq
  if (!isSame || data.metadata.intent !== name) problems.push(`${name} is not what was answered`)
  if (acknowledged.some(other => !isAnswer(other, text)))
    problems.push(`${name} got different answers`)
  if (key === undefined) return problems
  if (!isAnswer(bodies.get(key), text)) problems.push(`${name}'s stored answer is another one`)
  if (acknowledged.length - replays > 1) problems.push(`${name} was done more than once`)
  return problems
}

/** Reads the log with the deleted events in their places. */
async function readWhole(
  sql: Sql,
  projectId: string,
  leavers: RemovedEvents,
): Promise<{ rows: Stored[]; left: Set<string>; problems: string[] }> {
  const there = await readLog(sql, projectId)
  const ids = new Set(there.map(({ id }) => id))
  const own = [...leavers.values()].filter(leaver => leaver.projectId === projectId)
  const gone = own.filter(({ id }) => !ids.has(id))
  const problems = [
    ...own.filter(({ fate, id }) => fate === 'gone' && ids.has(id)),
    ...gone.filter(({ fate }) => fate === 'there'),
  ].map(({ intent, fate }) => `${intent} should be ${fate}`)
  const rows = [...there, ...gone.map(one => ({ ...one, created_at_us: '' }))]
  return {
    rows: rows.sort((a, b) => a.seq - b.seq),
    left: new Set(gone.map(({ id }) => id)),
    problems,
  }
}

async function readLog(sql: Sql, projectId: string): Promise<Stored[]> {
  return await sql<Stored[]>`
    select
      e.id, e.seq::int as seq, (extract(epoch from e.created_at) * 1000000)::bigint::text as created_at_us,
      e.metadata ->> 'intent' as intent
    from events e
    where e.project_id = ${projectId}
    order by e.seq
  `
}

async function checkLog(
  sql: Sql,
  projectId: string,
  { rows, left }: { rows: Stored[]; left: ReadonlySet<string> },
): Promise<string[]> {
  const problems: string[] = []
  let lastUs = 0
  rows.forEach(({ id, seq, created_at_us }, index) => {
    if (seq !== index + 1) problems.push(`seq ${seq} is in the place of ${index + 1}`)
    if (left.has(id)) return
    if (Number(created_at_us) < lastUs) problems.push(`created_at runs against seq at ${seq}`)
    lastUs = Number(created_at_us)
  })
  const [head] = await sql<[{ last_seq: number; unused: number }]>`
    select
      l.last_seq::int as last_seq,
      (
        select count(*)::int from channels c
        where c.project_id = l.project_id
          and not exists (select from events e where e.project_id = c.project_id and e.channel_id = c.id)
      ) as unused
    from event_logs l
    where l.project_id = ${projectId}
  `
  if (head.last_seq !== rows.length)
    problems.push(`last_seq is ${head.last_seq} for ${rows.length} events`)
  if (head.unused > 0 && left.size === 0) problems.push(`${head.unused} channels without an event`)
  return problems
}

async function readAnswers(sql: Sql, projectIds: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql<{ key: string; body: string }[]>`
    select key, body from idempotency_keys where project_id = any(${toArray(projectIds)}::uuid[])
  `
  return new Map(rows.map(({ key, body }) => [key, body]))
}
