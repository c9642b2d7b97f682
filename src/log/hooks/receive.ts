import { hashSecret, isSecret } from '../../access/guard/secret.ts'
import { Fault, toReason } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { logger } from '../../base/log.ts'
import { toArray } from '../../database/arrays.ts'
import type { Pool } from '../../database/pool.ts'
import { rememberOpened, type Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import { checkEncoding, readBytes, toDeclaredBytes } from '../../http/body.ts'
import { hold, type Call } from '../../http/call.ts'
import type { FailedAuthentications } from '../../http/limits/failed-authentications.ts'
import { toStatus } from '../../http/failures.ts'
import { tooManyRequests } from '../../http/limits/rate-limit.ts'
import type { InputLimits } from '../../http/route.ts'
import { findChannels } from '../channels/channels.ts'
import { toNewEvent, type NewEvent } from '../events/new-event.ts'
import { STATES } from '../events/state.ts'
import { countBytes, type EventParts } from '../events/v1-routes.ts'
import { cutBytes, readDrafts, toEvents, toThread } from './convert.ts'
import { MAX_REQUESTS } from './hooks.ts'
import { toHash, type Draft, type Received } from './presets/received.ts'
import { readBody } from './read-body.ts'
import type { Hook } from './schema.ts'
import { toSealedCell } from './sealing.ts'
import { findSignatureProblem, SCHEMES } from './signature.ts'

const log = logger('hooks')
const MAX_BODY_BYTES = 1024 * 1024
const MAX_PER_MINUTE = 300
const MAX_HEADERS = 50
const MAX_HEADER_LENGTH = 1_000
/** The addresses of people, which proxies add, are not kept. */
const ADDRESS_HEADERS =
  /(^|-)(forwarded|(forwarded|proxied)-for|(client|socket)?ip(v[46])?|addr(ess)?)$/
const SECRET_HEADERS =
  /^(?!idempotency-key$).*(auth|cookie|credential|jwt|key|pass|secret|signature|token)/i

export interface ReceiveParts extends Pick<EventParts, 'appender' | 'quotas'> {
  secrets: Secrets
  failedAuthentications: FailedAuthentications
  inputLimits: InputLimits
  /** For the hooks, which strangers can ask for. */
  sessions: Pool
  /** For threads, and the records of requests. */
  lists: Pool
  /** Returns the client's address, for counting failed authentications. */
  toAddress(request: Request): string
}

/** The row of a hook, with the request that it counted. */
interface FoundHook extends Pick<Hook, 'name' | 'preset' | 'channel' | 'template' | 'isOn'> {
  projectId: string
  organizationId: string
  uuid: string
  secret: string | null
  used: number
  retryAfter: number
}

/** The result of a request. */
interface Outcome {
  status: number
  text: string
  eventIds: string[]
}

/** Returns a function that turns a request into events, and resolves when they are stored. */
export function createReceiver(parts: ReceiveParts) {
  const { sessions, lists, appender, quotas, failedAuthentications, inputLimits, toAddress } = parts
  const open = rememberOpened(parts.secrets)

  /** Finds the hook of a token. Throws `not_found`, `rate_limited` and `gone`. */
  async function admit(token: string, request: Request): Promise<FoundHook> {
    const hook = await failedAuthentications.lookUp(
      isSecret(token) ? hashSecret(token) : undefined,
      (hash, share) => sessions.of(share).run(sql => findHook(sql, hash)),
      () => toAddress(request),
    )
    if (!hook) throw new Fault('not_found', 'No inbound hook has this address')
    if (hook.used > MAX_PER_MINUTE) throw tooManyRequests(Math.max(1, Math.ceil(hook.retryAfter)))
    if (!hook.isOn)
      throw new Fault('gone', 'This inbound hook is off. An admin of the project can turn it on.')
    return hook
  }

  function verify({ preset, secret, uuid }: FoundHook, headers: Headers, bytes: Uint8Array): void {
    const scheme = SCHEMES[preset]
    if (secret === null || !scheme) return
    const found = { secret: open(secret, toSealedCell(uuid)), nowMs: Date.now() }
    const problem = findSignatureProblem(scheme, { headers, bytes }, found)
    if (problem !== undefined) throw new Fault('unauthorized', `${problem}.`)
  }

  /** Appends the events of a request that its threads do not have yet. */
  async function append(hook: FoundHook, call: Call, request: Received): Promise<Outcome> {
    const { projectId, organizationId } = hook
    const { drafts, fits } = readDrafts(request)
    const known = await findThreads(lists.of(organizationId), hook, drafts)
    const news = drafts.flatMap((draft, nth) => {
      const { seq = '0', state = null } = known.get(nth) ?? {}
      if (state !== null && draft.knownIn?.includes(STATES[state]!)) return []
      // A thread that opens again under the same key is news.
      return draft.key && draft.knownIn ? { ...draft, key: `${draft.key} ${seq}` } : draft
    })
    const distinct = [...new Map(news.map(draft => [draft.key ?? draft, draft])).values()]
    const made = toEvents(distinct, request)
    const events = made.map(one => ({ ...one, event: toNewEvent(one.input) }))
    const bytes = events.reduce((sum, { event }) => sum + countBytes(event), 0)
    if (events.length > 0) quotas.check({ organizationId, events: events.length, bytes })
    const written = await Promise.allSettled(
      events.map(({ event, input, key, mayBeLate }) => {
        const claim = key && toHash(key)
        const job = {
          ...{ projectId, mayBeLate, requestId: call.requestId, admission: undefined },
          claim: claim
            ? { key: `hook:${hook.uuid}:${claim}`, fingerprint: Buffer.from(claim, 'hex') }
            : undefined,
        }
        const write = async (one: NewEvent) => {
          const { outcome, body } = await appender.append({ ...job, event: one })
          if (outcome !== 'done')
            return { id: (JSON.parse(body) as { data: { id: string } }).data.id, isNew: false }
          quotas.count({ organizationId, events: 1, bytes: countBytes(one) })
          return { id: one.id.id, isNew: true }
        }
        return write(event).catch((error: unknown) => {
          // The template names one channel too many.
          if (!isQuota(error) || input.channelName === hook.channel) throw error
          return write(toNewEvent({ ...input, channelName: hook.channel }))
        })
      }),
    )
    const failed = written.find(one => one.status === 'rejected')
    if (failed) throw failed.reason
    const stored = written.flatMap(one => (one.status === 'fulfilled' ? [one.value] : []))
    const added = stored.filter(({ isNew }) => isNew).length
    const text = describe(added, drafts.length - distinct.length + stored.length - added, fits)
    return { status: 200, text, eventIds: stored.map(({ id }) => id) }
  }

  /** Returns the ids of the events of a request, also if an earlier one made them. */
  return async (call: Call, request: Request, token: string): Promise<string[]> => {
    const hook = await admit(token, request)
    const { organizationId: caller } = hook
    const { headers, signal } = request
    const { memory, timeoutMs } = inputLimits
    const maxBytes = MAX_BODY_BYTES
    let bytes: Uint8Array = new Uint8Array()
    const note = (outcome: Outcome) =>
      record(lists.of(caller), hook, { headers, bytes }, outcome).catch((error: unknown) =>
        log.warning('A request to an inbound hook was not recorded: {reason}', {
          reason: toReason(error),
        }),
      )
    try {
      checkEncoding(request)
      const { resize, release } = memory.reserve(caller, toDeclaredBytes(request, maxBytes))
      hold(call, release)
      bytes = await readBytes(request, { timeoutMs, caller, maxBytes, onArrived: resize })
      verify(hook, headers, bytes)
      const read = await readBody(bytes, { headers, caller, signal })
      const id = toId('hok', hook.uuid)
      const outcome = await append(hook, call, { ...read, headers, hook: { ...hook, id } })
      await note(outcome)
      return outcome.eventIds
    } catch (error) {
      const fault = toRefusal(error)
      const text = fault instanceof Fault ? fault.message : 'The server could not store it'
      await note({ status: toStatus(fault), text, eventIds: [] })
      throw fault
    }
  }
}

function isQuota(error: unknown): error is Fault {
  return error instanceof Fault && error.code === 'quota_exceeded'
}

/** Asks for the request again. Those of its events that are stored stay as they are. */
function toRefusal(error: unknown): unknown {
  if (isQuota(error)) return new Fault('unavailable', error.message, { 'Retry-After': '60' })
  return error instanceof Fault && error.code === 'idempotency_key_in_use'
    ? new Fault('unavailable', 'This request is being stored. Send it again.')
    : error
}

function describe(added: number, known: number, fits: boolean): string {
  if (added === 0) return 'Changed nothing: it was known'
  if (!fits) return 'Became an event with its body, as the preset knows no such request'
  const events = added === 1 ? '1 event' : `${added.toLocaleString('en')} events`
  return `Became ${events}${known > 0 ? `. Known before: ${known.toLocaleString('en')}` : ''}`
}

/** Finds a hook by the hash of its token, and counts a request. */
async function findHook(sql: Queryable, hash: string): Promise<FoundHook | undefined> {
  const [found] = await sql<FoundHook[]>`
    select
      h.project_id as "projectId", p.organization_id as "organizationId", h.id as uuid, h.name, h.preset,
      h.channel, h.template, h.secret, h.is_on as "isOn", w.used, w.retry_after as "retryAfter"
    from (select * from hooks where token_hash = decode(${hash}, 'hex') limit 1) h
      join projects p on p.id = h.project_id and p.deleted_at is null
      cross join lateral count_in_rate_window(h.id, 1) w
  `
  return found
}

/** Returns the last generation of the thread of each draft that must know it, and its state. */
async function findThreads(
  pool: Pool,
  { projectId, channel }: FoundHook,
  drafts: readonly Draft[],
): Promise<Map<number, { seq: string; state: number | null }>> {
  const asked = drafts.flatMap(({ knownIn, thread }, nth) =>
    knownIn && thread ? [{ nth, key: toThread(thread) }] : [],
  )
  if (asked.length === 0) return new Map()
  const rows = await pool.run(async sql => {
    // The presets that ask have one channel.
    const [channelId = null] = await findChannels(sql, projectId, [channel])
    return sql<{ nth: number; seq: string; state: number | null }[]>`
      select k.nth, t.seq, t.state
      from unnest(${toArray(asked.map(({ nth }) => nth))}::int[], ${toArray(asked.map(({ key }) => key))}::text[]) as k (nth, key)
        cross join lateral (
          select t.thread_seq as seq, t.state
          from threads t
          where t.project_id = ${projectId}
            and (t.channel_id, t.key) >= (${channelId}::uuid, k.key) and (t.channel_id, t.key) <= (${channelId}::uuid, k.key)
          order by t.channel_id desc, t.key desc, t.thread_seq desc
          limit 1
        ) t
    `
  })
  return new Map(rows.map(row => [row.nth, row]))
}

/** Records a request, and removes those before the last 20. */
async function record(
  pool: Pool,
  { projectId, uuid: hookId }: FoundHook,
  { headers, bytes }: { headers: Headers; bytes: Uint8Array },
  { status, text, eventIds }: Outcome,
): Promise<void> {
  const body = cutBytes(clean(new TextDecoder().decode(bytes)))
  const kept = [...headers].filter(([name]) => !ADDRESS_HEADERS.test(name))
  const shown = kept.slice(0, MAX_HEADERS).map(([name, value]) => {
    const isSecret = SECRET_HEADERS.test(name)
    return [name, isSecret ? '(redacted)' : clean(value.slice(0, MAX_HEADER_LENGTH))]
  })
  const ids = eventIds.map(id => parseId('evt', id) ?? null)
  await pool.run(
    sql => sql`
      with counted as (
        update hooks set requests = requests + 1, refused = refused + ${status === 401 ? 1 : 0}
        where project_id = ${projectId} and id = ${hookId}
        returning id
      ), removed as (
        delete from hook_requests r
        using (
          select id from hook_requests where project_id = ${projectId} and hook_id = ${hookId}
          order by id desc offset ${MAX_REQUESTS - 1}
        ) old
        where r.project_id = ${projectId} and r.hook_id = ${hookId} and r.id = old.id
      )
      insert into hook_requests (project_id, hook_id, id, status, outcome, headers, body, event_ids)
      select ${projectId}, id, ${newId('hkr').uuid}, ${status}, ${text},
        ${JSON.stringify(Object.fromEntries(shown))}::text::jsonb, ${body}, ${toArray(ids)}::uuid[]
      from counted
    `,
  )
}

function clean(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd')
}
