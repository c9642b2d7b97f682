import { Icon } from '../components/icon.tsx'
import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import { focusSearch } from '../palette/state.ts'
import type { Failure } from '../request.ts'
import { toSearchPath, type Search } from './search.ts'

interface SearchBoxOptions {
  project: string
  search: Search
  /** Why the search cannot be understood. */
  failure: Failure | undefined
}

/** Where a search is typed. It is looked for on Enter; `/` leads here from anywhere. */
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
    // The keyboard of a phone is in the way of what is found.
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
            Words, or <code>"exact words"</code> <code>channel:</code> <code>tag:</code>{' '}
            <code>user:</code> <code>source:</code> <code>meta:plan=pro</code>{' '}
            <code>has:metadata</code> <code>before:2026-01-31</code> <code>after:</code>, and{' '}
            <code>-</code> before what is not wanted.
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
