import { createHash } from 'node:crypto'
import { isInvisible, takeStart } from '../../base/display-text.ts'
import { Fault } from '../../base/errors.ts'
import { findIssues } from '../../http/rules.ts'
import { createValidator, InvalidRequest } from '../../http/validation.ts'
import { EventInput } from '../events/schema.ts'
import { STATES, type State } from '../events/state.ts'
import { LEVELS } from '../channels/level.ts'
import { cut } from '../ntfy/message.ts'
import { alertmanager } from './presets/alertmanager.ts'
import { generic } from './presets/generic.ts'
import { github } from './presets/github.ts'
import { grafana } from './presets/grafana.ts'
import type { Draft, Preset, Received } from './presets/received.ts'
import { stripe } from './presets/stripe.ts'
import { uptimeKuma } from './presets/uptime-kuma.ts'
import type { PresetName } from './schema.ts'

const MAX_TITLE = 500
const MAX_DESCRIPTION = 5_000
const MAX_THREAD = 255
const MAX_EVENTS = 1_000
/** The most bytes that an event keeps of a body, and a request of its own. */
export const MAX_KEPT = 64 * 1024

const PROGRAMS: Record<PresetName, Preset> = {
  ...{ alertmanager, grafana, 'uptime-kuma': uptimeKuma, github, stripe, generic },
}
const event = createValidator(EventInput)

/** An event of a request. */
export interface Converted {
  input: EventInput
  key: string | undefined
  knownIn: readonly State[]
}

/** A request, with the hook that it is for. */
export interface HookRequest extends Received {
  text: string
  hook: Received['hook'] & { preset: PresetName; channel: string }
}

/**
 * Returns the events that a request becomes, at least one: what its preset does not know becomes an
 * event with its body. Pure, whatever the request has.
 */
export function convert(request: HookRequest): { events: Converted[]; fits: boolean } {
  const drafts = toDrafts(request)
  const { preset } = request.hook
  if (drafts.length === 0) {
    const title = `A request that is not one of ${preset} came to ${request.hook.name}`
    return { events: [toEvent({ title }, request)], fits: false }
  }
  const events = drafts.slice(0, MAX_EVENTS).map(draft => toEvent(draft, request))
  const more = drafts.length - events.length
  if (more > 0) {
    const title = `${more.toLocaleString('en')} more events of one request were left out`
    events.push(toEvent({ title, metadata: {} }, request))
  }
  return { events, fits: true }
}

function toDrafts(request: HookRequest): Draft[] {
  try {
    return PROGRAMS[request.hook.preset](request)
  } catch (error) {
    // A template that fills over 1 MiB.
    if (error instanceof Fault) return []
    throw error
  }
}

function toEvent(draft: Draft, { hook, body, text }: HookRequest): Converted {
  const { key, knownIn = [], level, state, url } = draft
  const title = draft.title?.trim().replaceAll(/\s+/g, ' ') ?? ''
  const thread = draft.thread?.trim()
  const bare = {
    channelName: hook.channel,
    title: isInvisible(title) ? `Request to ${hook.name}` : cut(title, MAX_TITLE),
    source: hook.preset === 'generic' ? 'hook' : hook.preset,
  }
  const hasChannel = findIssues(EventInput.properties.channelName, draft.channel)?.length === 0
  const input = {
    ...bare,
    ...(hasChannel && { channelName: draft.channel }),
    ...(draft.description && { description: cut(draft.description.trim(), MAX_DESCRIPTION) }),
    ...(LEVELS.some(one => one === level) && { level }),
    ...(thread && { thread: thread.length > MAX_THREAD ? toHash(thread) : thread }),
    ...(thread && STATES.some(one => one === state) && { state }),
    ...(findIssues(EventInput.properties.url, url)?.length === 0 && { url }),
    metadata: keepFields(draft.metadata ?? body),
  }
  const found = { key, knownIn }
  try {
    return { ...found, input: event.parse(input) }
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    // Such as a number that Postgres cannot store.
    return { ...found, input: { ...bare, metadata: { body: cutBytes(text) } } }
  }
}

/** Returns the fields that together have at most 64 KiB of JSON. */
function keepFields(body: object): Record<string, unknown> {
  let left = MAX_KEPT
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
  const bytes = Buffer.from(takeStart(text, MAX_KEPT))
  return bytes.length <= MAX_KEPT
    ? bytes.toString()
    : bytes
        .subarray(0, MAX_KEPT)
        .toString()
        .replace(/\ufffd+$/, '')
}

export function toHash(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
