import { DAYS } from '../feed/reader-dates.ts'
import { LEVELS } from '../../../log/channels/level.ts'
import { STATES } from '../../../log/events/state.ts'
import { HAS_FIELDS } from '../../../log/events/search-filters.ts'
import { LISTS, TIME_RANGES, toTermText } from '../feed/search.ts'
import { request } from '../request.ts'
import { KEYS, toPrefix, type Fragment, type Key } from './fragment.ts'

/** A suggestion: the text of a term, and what is said about it. */
export interface Option {
  term: string
  /** The text of the option: the value of a term, or the name of a filter. */
  name: string
  label: string | undefined
  /** The message that explains a filter. */
  description: string | undefined
  /** False for a term that needs more, such as a value. */
  isWhole: boolean
}

const DESCRIPTIONS = {
  channel: 'in a channel',
  tag: 'with a tag',
  user: 'of users, by name or ID',
  source: 'from a source',
  level: 'of a level',
  'level>=': 'of a level or a higher one',
  state: 'with a state of a thread',
  thread: 'in a thread',
  meta: 'with a value in the metadata',
  has: 'with a description, metadata, …',
  after: 'since a date, or a time ago',
  before: 'before a date, or a time ago',
} as const satisfies Record<Key, string>
const MAX_TEXT = 255

/** Suggests filters or values that need no request; undefined if the server must be asked. */
export function suggestHere({ key, value }: Fragment): Option[] | undefined {
  const lower = value.toLowerCase()
  if (key === '') {
    return KEYS.filter(one => toPrefix(one).startsWith(lower)).map(one => ({
      ...{ term: toPrefix(one), name: toPrefix(one), label: undefined },
      ...{ description: DESCRIPTIONS[one], isWhole: false },
    }))
  }
  const values =
    key === 'has'
      ? HAS_FIELDS
      : key === 'level' || key === 'level>='
        ? LEVELS
        : key === 'state'
          ? STATES
          : key === 'after' || key === 'before'
            ? [...DAYS, ...Object.keys(TIME_RANGES)]
            : undefined
  return values
    ?.filter(one => one.startsWith(lower) && one !== lower)
    .map(one => toOption(`${toPrefix(key)}${one}`, one))
}

/** Asks the server for values. Nothing is suggested when it cannot be reached. */
export async function suggestValues(project: string, { key, value }: Fragment): Promise<Option[]> {
  if (!isListed(key)) return []
  const wanted = { projectId: project, field: key, text: value.slice(0, MAX_TEXT) }
  const result = await request('GET /api/projects/:projectId/suggestions', wanted)
  if (!result.ok) return []
  return result.data.items.flatMap(({ value: found, label }) => {
    // The whole user is another filter than the same beginning.
    if (key !== 'user' && found.toLowerCase() === value.toLowerCase()) return []
    // The path of metadata needs a value.
    if (key === 'meta' && found.endsWith('=')) {
      const isPlain = !/[\s"()]/.test(found)
      return isPlain ? [{ ...toOption(`meta:${found}`, found), isWhole: false }] : []
    }
    const term = toTermText(key, found)
    return term === undefined
      ? []
      : [toOption(term, label ?? found, label === null ? undefined : found)]
  })
}

function toOption(term: string, name: string, label?: string): Option {
  return { term, name, label, description: undefined, isWhole: true }
}

function isListed(key: string): key is Exclude<keyof typeof LISTS, 'thread'> {
  return key !== 'thread' && Object.hasOwn(LISTS, key)
}
