import { isInvisible } from '../../base/display-text.ts'
import { Fault } from '../../base/errors.ts'
import { findIssues } from '../../http/rules.ts'
import { createValidator, InvalidRequest } from '../../http/validation.ts'
import { EventInput } from '../events/schema.ts'
import { STATES } from '../events/state.ts'
import { LEVELS } from '../channels/level.ts'
import { cut } from '../ntfy/message.ts'
import { alertmanager } from './presets/alertmanager.ts'
import { generic } from './presets/generic.ts'
import { github } from './presets/github.ts'
import { toHash, type Draft, type Preset, type Received } from './presets/received.ts'
import { stripe } from './presets/stripe.ts'
import { uptimeKuma } from './presets/uptime-kuma.ts'
import type { PresetName } from './schema.ts'

const MAX_TITLE = 500
const MAX_DESCRIPTION = 5_000
const MAX_THREAD = 255
const MAX_EVENTS = 1_000
/** The most bytes that the events of a request keep of it. */
const MAX_KEPT_OF_ALL = 1024 * 1024
/** The most bytes that an event keeps of a body, and a request of its own. */
export const MAX_KEPT = 64 * 1024

const PROGRAMS: Record<PresetName, Preset> = {
  ...{ alertmanager, grafana: alertmanager, 'uptime-kuma': uptimeKuma, github, stripe, generic },
}
const event = createValidator(EventInput)

/** An event of a request. */
export interface Converted extends Pick<Draft, 'key' | 'mayBeLate'> {
  input: EventInput
}

/**
 * Returns what a request tells, at least one thing: what its preset does not know becomes an event
 * with its body. Pure, whatever the request has.
 */
export function readDrafts(request: Received): { drafts: Draft[]; fits: boolean } {
  const { preset, name } = request.hook
  try {
    const drafts = PROGRAMS[preset](request)
    if (drafts.length > 0) return { drafts, fits: true }
  } catch (error) {
    // A template that fills over 1 MiB.
    if (!(error instanceof Fault)) throw error
  }
  const title = `Unknown ${preset} request to ${name}`
  return { drafts: [{ title }], fits: false }
}

/** Returns the events of a request, at most 1,000, and one more that says so, once a day. */
export function toEvents(drafts: readonly Draft[], request: Received): Converted[] {
  let left = MAX_KEPT_OF_ALL
  const events = drafts.slice(0, MAX_EVENTS).map(draft => {
    const input = toInput(draft, request, Math.min(left, MAX_KEPT))
    left -= Buffer.byteLength(JSON.stringify(input.metadata))
    return { ...draft, input }
  })
  if (drafts.length === events.length) return events
  const title = `Of a request with over ${MAX_EVENTS.toLocaleString('en')} events, the others were left out`
  const key = `left out ${new Date().toISOString().slice(0, 10)}`
  return [...events, { key, input: toInput({ title, metadata: {} }, request, 0) }]
}

/** Returns the key of a thread, which is a hash if it is too long. */
export function toThread(text: string | undefined): string | undefined {
  const thread = text?.trim()
  return thread && thread.length > MAX_THREAD ? toHash(thread) : thread
}

function toInput(draft: Draft, { hook, body, text }: Received, maxKept: number): EventInput {
  const { icon, level, state, url } = draft
  const title = draft.title?.trim().replaceAll(/\s+/g, ' ') ?? ''
  const thread = toThread(draft.thread)
  const bare = {
    channelName: hook.channel,
    title: isInvisible(title) ? `Request to ${hook.name}` : cut(title, MAX_TITLE),
    source: hook.preset === 'generic' ? 'hook' : hook.preset,
  }
  const hasChannel = findIssues(EventInput.properties.channelName, draft.channel)?.length === 0
  const input = {
    ...bare,
    ...(icon && { icon }),
    ...(hasChannel && { channelName: draft.channel }),
    ...(draft.description && { description: cut(draft.description.trim(), MAX_DESCRIPTION) }),
    ...(LEVELS.some(one => one === level) && { level }),
    ...(thread && { thread }),
    ...(thread && STATES.some(one => one === state) && { state }),
    ...(findIssues(EventInput.properties.url, url)?.length === 0 && { url }),
    metadata: keepFields(draft.metadata ?? body, maxKept),
  }
  try {
    return event.parse(input)
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    // Such as a number that Postgres cannot store.
    return { ...bare, metadata: maxKept < MAX_KEPT ? {} : { body: cutBytes(text) } }
  }
}

/** Returns the fields that together have at most these bytes of JSON. */
function keepFields(body: object, maxBytes: number): Record<string, unknown> {
  let left = maxBytes
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => {
      const bytes = Buffer.byteLength(JSON.stringify([name, value]))
      if (bytes > left) return false
      left -= bytes
      return true
    }),
  )
}

/** Returns the start of a text, of at most 64 KiB in UTF-8. */
export function cutBytes(text: string): string {
  const bytes = Buffer.from(text.slice(0, MAX_KEPT)).subarray(0, MAX_KEPT)
  // `stream` leaves out a character that is cut.
  return new TextDecoder().decode(bytes, { stream: true })
}
