import { searchEntries, toWords, type SearchEntry, type SearchResult } from './search-entries.ts'
import { isComposing } from '../key-press.ts'

const INDEX_URL = '/docs/search.json'
const LIMIT = 12

/** Puts a search field into `place`. The index is fetched when the reader first uses the field. */
export function offerSearch(place: HTMLElement): void {
  const input = document.createElement('input')
  input.type = 'search'
  input.placeholder = 'Search'
  input.autocomplete = 'off'
  input.setAttribute('aria-label', 'Search the documentation')
  input.setAttribute('aria-keyshortcuts', '/')
  const status = document.createElement('p')
  status.setAttribute('role', 'status')
  const list = document.createElement('ul')
  const panel = document.createElement('div')
  panel.className = 'search-note suggestions'
  panel.hidden = true
  panel.append(list, status)
  place.append(input, panel)

  let entries: Promise<SearchEntry[]> | undefined
  const load = () => (entries ??= fetchEntries().catch(() => ((entries = undefined), [])))

  async function update(): Promise<void> {
    const query = input.value
    const known = await load()
    if (query !== input.value) return
    const results = searchEntries(known, query, LIMIT)
    list.replaceChildren(...results.map(result => toItem(result, toWords(query))))
    status.textContent = toStatus(results.length, known.length)
    panel.hidden = query.trim() === ''
  }

  /** Moves the focus between the field and the results; `step` is 1 or -1. */
  function move(step: number): void {
    const stops = [input, ...list.querySelectorAll('a')]
    const at = stops.findIndex(stop => stop === document.activeElement)
    stops[Math.min(Math.max(at + step, 0), stops.length - 1)]?.focus()
  }

  input.addEventListener('focus', () => void load())
  input.addEventListener('input', () => void update())
  place.addEventListener('keydown', event => {
    if (isComposing(event)) return
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      move(event.key === 'ArrowDown' ? 1 : -1)
    } else if (event.key === 'Enter' && event.target === input) {
      list.querySelector('a')?.click()
    } else if (event.key === 'Escape') {
      panel.hidden = true
      input.focus()
    }
  })
  // A link to the page itself leaves the panel open otherwise.
  list.addEventListener('click', () => (panel.hidden = true))
  place.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !place.contains(relatedTarget)) panel.hidden = true
  })
  document.addEventListener('pointerdown', ({ target }) => {
    if (target instanceof Node && !place.contains(target)) panel.hidden = true
  })
  document.addEventListener('keydown', event => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
}

async function fetchEntries(): Promise<SearchEntry[]> {
  const response = await fetch(INDEX_URL)
  if (!response.ok) throw new Error(`The index is answered ${response.status}`)
  return response.json() as Promise<SearchEntry[]>
}

function toStatus(results: number, entries: number): string {
  if (entries === 0) return 'The search index could not be loaded. Try again.'
  if (results === 0) return 'Nothing found. Try fewer words.'
  if (results === LIMIT) return `The first ${LIMIT} results`
  return results === 1 ? '1 result' : `${results} results`
}

function toItem({ url, page, title, excerpt }: SearchResult, words: string[]): HTMLElement {
  const link = document.createElement('a')
  link.href = url
  link.append(
    toElement('b', title, words),
    ...(page === title ? [] : [toElement('span', ` · ${page}`, [])]),
    toElement('small', excerpt, words),
  )
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** An element with the beginnings of words marked that match the query. */
function toElement(name: string, text: string, words: readonly string[]): HTMLElement {
  const element = document.createElement(name)
  const lower = text.toLowerCase()
  for (let at = 0; at < text.length;) {
    const starts = words.map(word => ({ word, at: lower.indexOf(word, at) }))
    const [next] = starts.filter(start => start.at >= 0).sort((one, other) => one.at - other.at)
    element.append(text.slice(at, next?.at))
    if (next === undefined) break
    const mark = document.createElement('mark')
    at = next.at + next.word.length
    mark.textContent = text.slice(next.at, at)
    element.append(mark)
  }
  return element
}
