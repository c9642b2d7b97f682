import type { Static } from '@sinclair/typebox'
import type { SearchFilters } from '../events/search-filters.ts'
import { fromPlainFilters, toSearchFilters } from '../events/search-schema.ts'
import { createValidator, InvalidRequest } from '../../http/validation.ts'
import { parseId } from '../../base/ids.ts'
import { type FeedFilters, type ServerMessage, Subscribe, Unsubscribe, Watch } from './schema.ts'

const validators = {
  subscribe: createValidator(Subscribe),
  unsubscribe: createValidator(Unsubscribe),
}

/** A message about one project, with its uuid, and the filters of a subscription. */
interface ProjectMessage {
  message: Subscribe | { type: 'unsubscribe'; project: string }
  projectId: string | undefined
  filters: SearchFilters
}

/** Parses a client's message. Returns it, with its project's uuid, or the problem with it. */
export function parseMessage(
  text: string,
): ProjectMessage | Static<typeof Watch> | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'The message is not JSON' }
  }
  const type = typeof value === 'object' && value !== null && 'type' in value && value.type
  if (type === 'watch') return { type }
  if (type !== 'subscribe' && type !== 'unsubscribe') {
    return { problem: 'type: Must be subscribe, unsubscribe or watch' }
  }
  try {
    const message = validators[type].parse(value)
    const filters = toFilters('filters' in message ? message.filters : undefined)
    if ('search' in message && message.search)
      filters.groups.push({ isExcluded: false, filters: [toSearchFilters(message.search)] })
    return { message, projectId: parseId('prj', message.project), filters }
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    const [first] = error.details
    return { problem: `${first?.path.join('.')}: ${first?.message}` }
  }
}

/** Converts the filters of a subscription to those of a search. */
function toFilters(filters: FeedFilters = {}): SearchFilters {
  const alternatives = filters.any?.map(one => toFilters(one))
  return {
    ...fromPlainFilters(filters, ['filters']),
    groups: alternatives ? [{ isExcluded: false, filters: alternatives }] : [],
  }
}

/** Serializes a message of the server. */
export function toMessage(message: Static<typeof ServerMessage>): string {
  return JSON.stringify(message)
}

const EVENT_START = '{"type":"event",'

/** Turns the text of an `event` message into that of a `restored` message. */
export function toRestoredMessage(eventMessage: string): string {
  return '{"type":"restored",' + eventMessage.slice(EVENT_START.length)
}

/** Serializes an `event` message around the event's JSON. `project` is the public id. */
export function toEventMessage(project: string, seq: number, eventJson: string): string {
  return `${EVENT_START}"project":"${project}","seq":${seq},"event":${eventJson}}`
}
