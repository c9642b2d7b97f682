import type { DeferredAdmission } from '../../access/keys/deferred-admission.ts'
import { newId } from '../../base/ids.ts'
import { toRank, type Level } from '../channels/level.ts'
import { toArray, toBytea } from '../../database/arrays.ts'
import type { Fragment, Queryable } from '../../database/sql.ts'
import type { IdempotencyClaim } from '../../http/limits/idempotency.ts'
import { toResponseHead, toResponseTail } from './event-json.ts'
import type { NewEvent } from './new-event.ts'
import { STATES, type State } from './state.ts'

/** The fields of a channel that an event's row and response need. */
export interface EventChannel {
  uuid: string
  id: string
  name: string
}

/** One request with its event. */
export interface AppendJob {
  projectId: string
  event: NewEvent
  requestId: string
  claim: IdempotencyClaim | undefined
  /** True if it opens no thread that has ended: it can arrive after the end. */
  mayBeLate?: boolean | undefined
  /** Its admission, unless the request was admitted before. */
  admission: DeferredAdmission | undefined
}

/** The distinct values of a column in order, and the position of each job's value, from 1. */
export interface Numbered {
  values: string[]
  counts: number[]
  /** Null for a job without a value. */
  numbers: (number | null)[]
}

/** Numbers the distinct values of a column. */
export function number(column: readonly (string | undefined)[]): Numbered {
  const values = [...new Set(column)].filter(value => value !== undefined).toSorted()
  const positions = new Map(values.map((value, index) => [value, index]))
  const counts = values.map(() => 0)
  const numbers = column.map(value => {
    const index = value === undefined ? undefined : positions.get(value)
    if (index === undefined) return null
    counts[index] = (counts[index] ?? 0) + 1
    return index + 1
  })
  return { values, counts, numbers }
}

/** The result of append_batch, and of append_single. */
export interface AppendedRows {
  at_ms: string
  /** For each key: limit, used, reset_at, retry_after. */
  windows: ([number, number, number, number] | null)[] | null
  seqs: (number | null)[]
  notes: Note[] | null
}

/** Details of one event from append_batch, by its position from 1. */
export interface Note {
  ord: number
  /** `full`: the event needs one channel too many. */
  outcome: 'replayed' | 'reused' | 'running' | 'full' | null
  body: string | null
  /** This and the next two fields are null for a cached channel. */
  channelUuid: string | null
  channelId: string | null
  channelName: string | null
  userId: string | null
  /** The level that the thread or the channel gave, or the event had; null for normal. */
  level: Level | null
  /** The state of the thread; null without one. */
  state: State | null
  threadSeq: number | null
}

/** Jobs that are appended in one transaction. */
export interface Batch {
  jobs: AppendJob[]
  /** The cached channel of each job. */
  channels: (EventChannel | undefined)[]
  projects: Numbered
  keys: Numbered
}

/** Runs the statement that counts the requests of a batch and appends its events. */
export async function appendRows(
  sql: Queryable,
  { jobs, channels, projects, keys }: Batch,
): Promise<AppendedRows> {
  const [job] = jobs
  const [channel] = channels
  if (jobs.length === 1 && job && channel && !job.claim && job.event.thread === null) {
    return appendRow(sql, job, channel, keys.values[0])
  }
  const [row] = await sql<[AppendedRows]>`
    select at_ms, windows, seqs, notes
    from append_batch(
      project_ids => ${toArray(projects.values)}::uuid[],
      key_hashes => ${keys.values.length > 0 ? toArray(keys.values.map(toBytea)) : null}::bytea[],
      key_counts => ${toArray(keys.counts)}::int[],
      project_numbers => ${projects.values.length > 1 ? toArray(projects.numbers) : null}::int[],
      key_numbers => ${toArray(keys.numbers)}::int[],
      ${toColumns(sql, jobs, channels)}
    )
  `
  return row
}

/**
 * Appends batches on one node of Citus. Each batch has the projects of one shard, and its requests
 * were counted before. Returns one row for each batch.
 */
export async function appendOnNode(
  sql: Queryable,
  batches: readonly Batch[],
): Promise<AppendedRows[]> {
  const projectIds = batches.flatMap(({ projects }) => projects.values)
  return sql<AppendedRows[]>`
    select at_ms, windows, seqs, notes
    from append_batches(
      project => ${projectIds[0] ?? null}::uuid,
      project_ids => ${toArray(projectIds)}::uuid[],
      project_counts => ${toArray(batches.map(({ projects }) => projects.values.length))}::int[],
      event_counts => ${toArray(batches.map(({ jobs }) => jobs.length))}::int[],
      project_numbers => ${toArray(batches.flatMap(({ projects }) => projects.numbers))}::int[],
      ${toColumns(
        sql,
        batches.flatMap(({ jobs }) => jobs),
        batches.flatMap(({ channels }) => channels),
      )}
    )
  `
}

/** Returns the columns of the events as arguments of append_batch and append_batches. */
function toColumns(
  sql: Queryable,
  jobs: readonly AppendJob[],
  cached: readonly (EventChannel | undefined)[],
): Fragment {
  // Events of a batch that create the same channel share one candidate.
  const candidates = new Map<string, EventChannel>()
  const channels = jobs.map(({ projectId, event, claim }, index) => {
    const channel = cached[index]
    // For a cached channel, the name is only needed in a response that the function stores.
    if (channel)
      return claim
        ? { ...channel, slug: null }
        : { uuid: channel.uuid, id: null, name: null, slug: null }
    const key = `${projectId} ${event.channelSlug}`
    const candidate = candidates.get(key) ?? { ...newId('chn'), name: event.channelName }
    candidates.set(key, candidate)
    return { ...candidate, slug: event.channelSlug }
  })
  const column = (value: (event: NewEvent) => Value, usual: Value = null) =>
    toColumn(jobs, ({ event }) => value(event), usual)
  const keyed = (value: (job: AppendJob, claim: IdempotencyClaim) => string) =>
    toColumn(jobs, job => (job.claim ? value(job, job.claim) : null), null)
  return sql`
    ids => ${column(({ id }) => id.uuid)}::uuid[],
    occurred_ats => ${column(({ occurredAtMs }) => toTime(occurredAtMs))}::timestamptz[],
    channel_ids => ${toArray(channels.map(({ uuid }) => uuid))}::uuid[],
    channel_public_ids => ${toColumn(channels, ({ id }) => id, null)}::text[],
    channel_slugs => ${toColumn(channels, ({ slug }) => slug, null)}::text[],
    channel_names => ${toColumn(channels, ({ name }) => name, null)}::text[],
    titles => ${column(({ title }) => title)}::text[],
    descriptions => ${column(({ description }) => description)}::text[],
    icons => ${column(({ icon }) => icon)}::text[],
    tag_lists => ${column(({ tags }) => (tags.length > 0 ? toArray(tags) : null))}::text[],
    metadatas => ${column(({ metadataJson }) => metadataJson, '{}')}::text[],
    user_refs => ${column(({ userRef }) => userRef)}::text[],
    sources => ${column(({ source }) => source, 'api')}::text[],
    notifies => ${column(({ notify }) => notify, true)}::boolean[],
    keys => ${keyed((_, { key }) => key)}::text[],
    fingerprints => ${keyed((_, { fingerprint }) => toBytea(fingerprint.toString('hex')))}::bytea[],
    response_heads => ${keyed(({ event }) => toResponseHead(event))}::text[],
    response_tails => ${keyed(({ requestId }) => toResponseTail(requestId))}::text[]
    ${
      jobs.some(({ event }) => event.level !== null || event.url !== null)
        ? sql`,
            levels => ${column(({ level }) => level && toRank(level))}::smallint[],
            urls => ${column(({ url }) => url)}::text[]
          `
        : sql``
    }${
      jobs.some(({ event }) => event.thread !== null)
        ? sql`,
            threads => ${column(({ thread }) => thread)}::text[],
            states => ${toColumn(jobs, ({ event: { state }, mayBeLate }) => state && (mayBeLate ? STATES.length : STATES.indexOf(state)), null)}::smallint[]
          `
        : sql``
    }
  `
}

/** Appends one event, as append_batch would. */
async function appendRow(
  sql: Queryable,
  { projectId, event }: AppendJob,
  channel: EventChannel,
  keyHash: string | undefined,
): Promise<AppendedRows> {
  const { id, title, description, icon, tags, metadataJson, userRef, source } = event
  const [row] = await sql<[AppendedRows]>`
    select at_ms, windows, seqs, notes
    from append_single(
      project => ${projectId},
      key_hash => decode(${keyHash ?? null}, 'hex'),
      event_id => ${id.uuid},
      occurred => ${toTime(event.occurredAtMs)}::timestamptz,
      channel => ${channel.uuid},
      event_title => ${title},
      event_description => ${description},
      event_icon => ${icon},
      event_tags => ${toArray(tags)}::text[],
      event_metadata => ${metadataJson}::text::json,
      event_user => ${userRef},
      event_source => ${source},
      is_notifying => ${event.notify},
      event_level => ${event.level && toRank(event.level)},
      event_url => ${event.url}
    )
  `
  return row
}

type Value = string | number | boolean | null

/** Returns a column as an array literal, or null if each value is the usual one. */
function toColumn<Item>(
  items: readonly Item[],
  toValue: (item: Item) => Value,
  usual: Value,
): string | null {
  const values = items.map(toValue)
  return values.every(value => value === usual) ? null : toArray(values)
}

function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
