import { Icon } from '../components/icon.tsx'
import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import { focusSearch } from '../palette/state.ts'
import type { Failure } from '../request.ts'
import { toSearchPath, type Search } from './search.ts'

interface SearchBoxOptions {
  project: string
  search: Search
  /** Why the search is invalid. */
  failure: Failure | undefined
}

/** The search box. Enter starts the search; `/` focuses the box from anywhere. */
export function SearchBox({ project, search, failure }: SearchBoxOptions) {
  const { route } = useLocation()
  const input = useRef<HTMLInputElement>(null)
  const { text } = search

  useEffect(() => {
    if (input.current) input.current.value = text
  }, [text, project])
  useEffect(() => {
    if (focusSearch.value) input.current?.select()
    focusSearch.value = false
  }, [])

  function submit(event: SubmitEvent) {
    event.preventDefault()
    const typed = input.current?.value.trim() ?? ''
    if (typed !== text) route(toSearchPath(project, { ...search, text: typed }))
    // The on-screen keyboard would cover the results.
    if (matchMedia('(pointer: coarse)').matches) input.current?.blur()
  }

  function leave(event: KeyboardEvent) {
    if (event.key !== 'Escape') return
    event.preventDefault()
    input.current?.blur()
  }

  return (
    <form class="search" role="search" onSubmit={submit}>
      <Icon name="search" size={18} />
      <input
        ref={input}
        id="search"
        type="search"
        name="q"
        placeholder="Search events"
        aria-label="Search events"
        aria-describedby={failure ? 'search-issue' : 'search-help'}
        aria-invalid={failure !== undefined}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        enterkeyhint="search"
        defaultValue={text}
        onKeyDown={leave}
      />
      <kbd aria-hidden="true">/</kbd>
      <div class="search-note">
        {failure ? (
          <p id="search-issue" class="issue" role="alert">
            {toSentence(failure)}
          </p>
        ) : (
          <p id="search-help">
            Words or <code>"a phrase"</code>. Filters: <code>channel:</code> <code>tag:</code>{' '}
            <code>user:</code> <code>source:</code> <code>meta:plan=pro</code>{' '}
            <code>has:metadata</code> <code>before:2026-01-31</code> <code>after:</code>. Put{' '}
            <code>-</code> in front of a term to exclude it.
          </p>
        )}
      </div>
    </form>
  )
}

function toSentence({ details, message }: Failure): string {
  if (details.length === 0) return message
  return details
    .map(({ path, message }) => [...path.filter(name => name !== 'q'), message].join(': '))
    .join('. ')
}
