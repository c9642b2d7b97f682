import { afterAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import fc, { type Arbitrary } from 'fast-check'
import { newId } from '../../../src/base/ids.ts'
import { LEVELS } from '../../../src/log/channels/level.ts'
import type { Sql } from '../../../src/database/sql.ts'
import {
  appendRows,
  number,
  type AppendJob,
  type Note,
} from '../../../src/log/events/append-statement.ts'
import { toEventJson, toEventResponse, toUserAsSent } from '../../../src/log/events/event-json.ts'
import type { NewEvent } from '../../../src/log/events/new-event.ts'
import { Event } from '../../../src/log/events/schema.ts'
import { STATES } from '../../../src/log/events/state.ts'
import { spell } from '../../properties/spelling.ts'
import { valueOf } from '../../properties/arbitraries.ts'
import { textOf } from '../../properties/texts.ts'
import { closeCluster, cloneDatabase } from '../../support/servers/postgres.ts'
import { newProject } from '../../support/worlds/project.ts'
import { openSql } from '../../support/sql.ts'

afterAll(closeCluster)

const USER = `user "1" \\ ü`
const ALIAS = 'ada@example.com'
/** A channel whose events without a level are critical. */
const URGENT = 'urgent'
/** The years that both to_char and toISOString write with four digits. */
const [FIRST_MS, LAST_MS] = [
  Date.parse('0001-01-01T00:00Z'),
  Date.parse('9999-12-31T23:59:59.999Z'),
]

const text = (maxLength: number) =>
  textOf({ minLength: 1, maxLength })
    .map(value => value.replaceAll('\0', '').toWellFormed())
    .filter(value => value !== '')
const orNull = <Value>(value: Arbitrary<Value>) => fc.option(value, { nil: null })

const events: Arbitrary<NewEvent> = fc
  .record({
    channelName: text(60),
    title: text(500),
    description: orNull(text(2_000)),
    icon: orNull(text(4)),
    tags: fc.uniqueArray(text(50), { maxLength: 20 }),
    metadataJson: valueOf({ type: 'object' }).map(value => spell(value)),
    userRef: orNull(fc.oneof(fc.constantFrom(USER, ALIAS), text(255))),
    source: fc.oneof(fc.constant('api'), text(100)),
    notify: fc.boolean(),
    occurredAtMs: orNull(fc.integer({ min: FIRST_MS, max: LAST_MS })),
    level: fc.option(fc.constantFrom(...LEVELS), { nil: null, freq: 2 }),
    url: fc.option(text(200), { nil: null, freq: 2 }),
    thread: fc.option(fc.oneof(fc.constant('a thread'), text(255)), { nil: null, freq: 2 }),
    state: orNull(fc.constantFrom(...STATES)),
    isUrgent: fc.boolean(),
  })
  .map(({ isUrgent, ...event }) => ({
    ...event,
    state: event.thread === null ? null : event.state,
    id: newId('evt'),
    channelSlug: isUrgent ? URGENT : randomUUID(),
  }))

test('contract §5 the program and Postgres write the same bytes for every event', async () => {
  const sql = openSql(await cloneDatabase())
  const project = await newProject({ sql, url: '' })
  await identify(sql, project.id)
  await addUrgentChannel(sql, project.id)
  const property = fc.asyncProperty(fc.array(events, { maxLength: 12 }), async made => {
    const jobs = made.map((event, n) => ({
      projectId: project.id,
      event,
      requestId: randomUUID(),
      // Events without a key are in the same batches.
      claim: n % 4 === 3 ? undefined : { key: event.id.id, fingerprint: Buffer.from('01', 'hex') },
      admission: undefined,
    }))
    const first = await append(sql, jobs)
    const responses = jobs.map(({ event, requestId }, n) => {
      const { seq, atMs, note } = first[n]!
      const assigned = {
        seq: String(seq),
        channelId: note.channelId!,
        channelName: note.channelName!,
        userId: note.userId,
        level: note.level,
        state: note.state,
        threadSeq: note.threadSeq,
        createdAtMs: atMs,
      }
      const withoutContent = {
        ...event,
        ...{ title: '', description: null, icon: null, tags: [], metadataJson: '{}', url: null },
        thread: null,
      }
      const full = toEventResponse(event, assigned, requestId)
      const asSent = { ...assigned, userId: event.userRef }
      expect(toUserAsSent(full, event)).toBe(toEventResponse(event, asSent, requestId))
      return {
        full,
        empty: toEventResponse(withoutContent, { ...assigned, userId: null }, requestId),
      }
    })
    const keyed = jobs.flatMap((job, n) => (job.claim ? [{ job, ...responses[n]! }] : []))
    const replay = async () =>
      (
        await append(
          sql,
          keyed.map(({ job }) => job),
        )
      ).map(({ note }) => note.body)

    for (const [n, { event, requestId }] of jobs.entries()) {
      const [row] = await sql<[{ text: string }]>`
        select find_event(${project.id}, ${event.id.uuid}) as text
      `
      const read = `{"success":true,"data":${toEventJson(row.text)},"requestId":"${requestId}"}`
      expect(read).toBe(responses[n]!.full)
      const { data } = JSON.parse(read)
      const { note } = first[n]!
      const isAbsent: Record<string, boolean> = {
        level:
          event.level === 'normal' ||
          (event.level === null &&
            (event.thread === null ? event.channelSlug !== URGENT : note.level === null)),
        url: event.url === null,
        thread: event.thread === null,
        state: note.state === null,
        threadSeq: event.thread === null,
      }
      expect(Object.keys(data)).toEqual(Object.keys(Event.properties).filter(one => !isAbsent[one]))
    }
    expect(await replay()).toEqual(keyed.map(({ full }) => full))
    await sql`
      select hide_events(${project.id}, array(
        select seq from events where project_id = ${project.id} and deleted_at is null
      ))
    `
    expect(await replay()).toEqual(keyed.map(({ empty }) => empty))
  })
  await fc.assert(property, { numRuns: 15, endOnFailure: true })
  await sql.end({ timeout: 1 })
})

interface One {
  seq: number | null
  atMs: number
  note: Note
}

/** Appends to channels that are not cached, so that each event has a note. */
async function append(sql: Sql, jobs: AppendJob[]): Promise<One[]> {
  if (jobs.length === 0) return []
  const projects = number(jobs.map(({ projectId }) => projectId))
  const channels = jobs.map(() => undefined)
  const row = await appendRows(sql, { jobs, channels, projects, keys: number([]) })
  const notes = new Map(row.notes?.map(note => [note.ord - 1, note]))
  return jobs.map((_, n) => ({
    seq: row.seqs[n] ?? null,
    atMs: Number(row.at_ms),
    note: notes.get(n)!,
  }))
}

async function addUrgentChannel(sql: Sql, projectId: string): Promise<void> {
  const { uuid, id } = newId('chn')
  await sql`
    insert into channels (project_id, id, public_id, slug, name, level, created_at)
    values (${projectId}, ${uuid}, ${id}, ${URGENT}, ${URGENT}, 3, now())
  `
  await sql`update event_logs set has_levels = true where project_id = ${projectId}`
}

async function identify(sql: Sql, projectId: string): Promise<void> {
  const { uuid, id } = newId('idn')
  await sql`
    insert into identities (project_id, user_id, id, public_id, properties, created_at, updated_at)
    values (${projectId}, ${USER}, ${uuid}, ${id}, '{}', now(), now())
  `
  await sql`
    insert into aliases (project_id, alias, user_id, created_at)
    values (${projectId}, ${ALIAS}, ${USER}, now())
  `
}
