import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { parseSearch, type SearchPart } from '../../../log/events/search-query.ts'
import type { SearchTerm } from '../../../log/events/search-lexer.ts'
import { parseIsoTimestamp } from '../../../log/events/timestamp.ts'
import { toDate, toDateTime, toPeriodName, toRangeName } from '../time.ts'
import { isStartOfDay, toReaderText } from './reader-dates.ts'
import {
  EMPTY_SEARCH,
  isFiltered,
  toHours,
  toSearchPath,
  toTermText,
  withoutPart,
  type Search,
} from './search.ts'
import { toProjectPath } from '../paths.ts'
import { QuietButton } from '../components/buttons.tsx'
import { FailedPart, lazyPages } from '../lazy-page.tsx'
import { loadOnDemand } from '../load-on-demand.ts'
import { useViews } from './use-channels.ts'

const SaveSearch = lazyPages(loadOnDemand, FailedPart)('SaveSearch')

interface ChipsOptions {
  project: string
  search: Search
  channels: readonly ProjectChannel[] | undefined
  /** True if the member may share a view, and add a card to the insights. */
  isEditor: boolean
}

interface Chip {
  name: string
  value: string
  /** The search without this filter. */
  rest: Search
}

/** The filters of a search, each with a button to remove it. */
export function Chips({ project, search, channels, isEditor }: ChipsOptions) {
  const { route } = useLocation()
  const chips = listChips(search, channels)
  if (!isFiltered(search) || chips.length === 0) return null
  const whole = toWholeSearch(search, channels)
  const { text } = whole

  function go(rest: Search) {
    // The pressed button disappears, so the focus must move elsewhere.
    document.getElementById('search')?.focus({ preventScroll: true })
    route(toSearchPath(project, rest))
  }

  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ name, value, rest }, n) => (
        <li key={`${name} ${value} ${n}`} class="chip">
          <span class="chip-name">{name}</span> <bdi>{value}</bdi>
          <button
            type="button"
            class="icon-button"
            aria-label={`Remove ${name} ${value}`}
            onClick={() => go(rest)}
          >
            <svg class="stroke" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
              <path d="m2.5 2.5 7 7m0-7-7 7" />
            </svg>
          </button>
        </li>
      ))}
      <li class="chip-actions">
        {chips.length > 1 && <QuietButton onClick={() => go(EMPTY_SEARCH)}>Clear all</QuietButton>}
        {isEditor && (
          <a class="quiet-button" href={toNewCardPath(project, whole)}>
            Add to insights
          </a>
        )}
        {text !== '' && <SaveButton {...{ project, text }} mayShare={isEditor} />}
      </li>
    </ul>
  )
}

/** A button that saves a search. It keeps its place, hidden, if the search is saved. */
function SaveButton({ text, ...options }: { project: string; text: string; mayShare: boolean }) {
  const [saving, setSaving] = useState<string>()
  const { data, failure } = useViews(options.project)
  const isHidden = data ? data.items.some(({ q }) => q === text) : !failure
  return (
    <>
      <QuietButton
        style={{ visibility: isHidden ? 'hidden' : 'visible' }}
        onClick={() => setSaving(text)}
      >
        Save this search
      </QuietButton>
      {saving === text && (
        <SaveSearch {...options} text={text} onClose={() => setSaving(undefined)} />
      )}
    </>
  )
}

/** The search with its channel in the text. */
function toWholeSearch(search: Search, channels: readonly ProjectChannel[] | undefined): Search {
  const { channelId, text } = search
  const name = channels?.find(({ id }) => id === channelId)?.name ?? channelId
  const channel = name === undefined ? undefined : toTermText('channel', name)
  const rest = channel !== undefined && / OR /.test(text) ? `(${text})` : text
  return { ...search, channelId: undefined, text: [channel, rest].filter(Boolean).join(' ') }
}

/** The insights, with a search that becomes a card. */
function toNewCardPath(project: string, { text, from }: Search): string {
  const hours = toHours(from ?? '')
  const query = { add: text, ...(hours !== undefined && { hours: String(hours) }) }
  return `${toProjectPath('insights', project)}?${new URLSearchParams(query)}`
}

function listChips(search: Search, channels: readonly ProjectChannel[] | undefined): Chip[] {
  const { channelId, from, to } = search
  const { parts, isAlternative } = parseSearch(search.text, 0)
  const channel = channels?.find(({ id }) => id === channelId)?.name ?? channelId
  const named = (id: string) => channels?.find(channel => channel.id === id)?.name ?? id
  const chips: Chip[] = []
  if (channel !== undefined)
    chips.push({ name: 'channel', value: channel, rest: { ...search, channelId: undefined } })
  if (from !== undefined || to !== undefined) {
    const rest = { ...search, from: undefined, to: undefined }
    chips.push({ name: 'time', value: toRange(from, to), rest })
  }
  if (isAlternative) {
    const value = toReaderText(search.text)
    return [...chips, { name: 'any of', value, rest: { ...search, text: '' } }]
  }
  for (const part of parts) {
    const rest = { ...search, text: withoutPart(search.text, part) }
    chips.push({ ...toPartChip(search.text, part, named), rest })
  }
  return chips
}

/** The chip of a term, or of a group in parentheses. */
function toPartChip(
  text: string,
  { start, end, term }: SearchPart,
  toChannelName: (id: string) => string,
): Pick<Chip, 'name' | 'value'> {
  if (!term) return { name: 'any of', value: toReaderText(text.slice(start, end)) }
  const name = term.name.replace('>=', '') || (term.isQuoted ? 'phrase' : 'word')
  return {
    name: term.isExcluded ? `not ${name}` : name,
    value: toTermValue(term, toChannelName),
  }
}

function toTermValue(
  { name, value, isQuoted }: SearchTerm,
  toChannelName: (id: string) => string,
): string {
  if (name === 'channel') return toChannelName(value)
  if (name === 'level>=') return `${value} or higher`
  if (name === 'user' && !isQuoted) return `${value}…`
  const ms = name === 'after' || name === 'before' ? parseIsoTimestamp(value) : undefined
  if (ms === undefined) return value
  return isStartOfDay(ms) ? toDate(ms) : toDateTime(ms)
}

function toRange(from: string | undefined, to: string | undefined): string {
  const hours = toHours(from ?? '')
  if (hours !== undefined) return toPeriodName(hours)
  const [fromMs = 0, toMs = 0] = [from, to].map(time => parseIsoTimestamp(time ?? ''))
  if (from === undefined) return `before ${toDateTime(toMs)}`
  if (to === undefined) return `after ${toDateTime(fromMs)}`
  return toRangeName(fromMs, toMs)
}
