import { useLocation } from 'preact-iso'
import type { ProjectChannel } from '../../../channels/schema.ts'
import { toSearchText, type SearchFilters } from '../../../events/search-query.ts'
import { toDateTime, toRangeName } from '../time.ts'
import {
  EMPTY_SEARCH,
  isFiltered,
  listTerms,
  parse,
  TIME_RANGES,
  toSearchPath,
  withoutTerm,
  type Search,
  type Term,
} from './search.ts'

const NAMES: Record<Term['list'], string> = {
  channels: 'channel',
  users: 'user',
  sources: 'source',
  tags: 'tag',
  metadata: 'meta',
  has: 'has',
  phrases: 'phrase',
  words: 'word',
}
const SPAN_NAMES: Record<keyof typeof TIME_RANGES, string> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
}

interface ChipsOptions {
  project: string
  search: Search
  channels: readonly ProjectChannel[] | undefined
}

interface Chip {
  name: string
  value: string
  /** The search without this filter. */
  rest: Search
}

/** The filters of a search, each with a button to remove it. */
export function Chips({ project, search, channels }: ChipsOptions) {
  const { route } = useLocation()
  const chips = listChips(search, channels)
  if (!isFiltered(search) || chips.length === 0) return null

  function go(rest: Search) {
    // The pressed button disappears, so the focus must move elsewhere.
    document.getElementById('search')?.focus({ preventScroll: true })
    route(toSearchPath(project, rest))
  }

  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ name, value, rest }) => (
        <li key={`${name} ${value}`} class="chip">
          <span class="chip-name">{name}</span> <bdi>{value}</bdi>
          <button type="button" aria-label={`Remove ${name} ${value}`} onClick={() => go(rest)}>
            <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
              <path d="m2.5 2.5 7 7m0-7-7 7" />
            </svg>
          </button>
        </li>
      ))}
      <li>
        <button type="button" class="quiet-button" onClick={() => go(EMPTY_SEARCH)}>
          Clear all
        </button>
      </li>
    </ul>
  )
}

function listChips(search: Search, channels: readonly ProjectChannel[] | undefined): Chip[] {
  const { channelId, from, to } = search
  const { filters } = parse({ ...EMPTY_SEARCH, text: search.text }, 0)
  const channel = channels?.find(({ id }) => id === channelId)?.name ?? channelId
  const named = (id: string) => channels?.find(channel => channel.id === id)?.name ?? id
  return [
    ...(channel === undefined
      ? []
      : [{ name: 'channel', value: channel, rest: { ...search, channelId: undefined } }]),
    ...(from === undefined && to === undefined
      ? []
      : [
          {
            name: 'time',
            value: toRange(from, to),
            rest: { ...search, from: undefined, to: undefined },
          },
        ]),
    ...listTerms(filters).map(term => ({
      name: `${term.sign === 'not' ? 'not ' : ''}${NAMES[term.list]}`,
      value: term.list === 'channels' ? named(term.value) : term.value,
      rest: { ...search, text: withoutTerm(filters, term) },
    })),
    ...(['after', 'before'] as const).flatMap(bound => toBound(search, filters, bound)),
  ]
}

function toBound(search: Search, filters: SearchFilters, bound: 'after' | 'before'): Chip[] {
  const ms = filters[bound]
  if (ms === null) return []
  const text = toSearchText({ ...filters, [bound]: null })
  return [{ name: bound, value: toDateTime(ms), rest: { ...search, text } }]
}

function toRange(from: string | undefined, to: string | undefined): string {
  if (from !== undefined && Object.hasOwn(TIME_RANGES, from)) {
    return SPAN_NAMES[from as keyof typeof TIME_RANGES]
  }
  if (from === undefined) return `before ${toDateTime(Date.parse(to ?? ''))}`
  if (to === undefined) return `after ${toDateTime(Date.parse(from))}`
  return toRangeName(Date.parse(from), Date.parse(to))
}
