import { Icon } from '../components/icon.tsx'
import { useLocation } from 'preact-iso'
import { useEffect, useRef, useState } from 'preact/hooks'
import { parseSearch } from '../../../log/events/search-query.ts'
import { isComposing } from '../key-press.ts'
import { focusSearch } from '../palette/state.ts'
import type { Failure } from '../request.ts'
import { parseTyped, toExactText, toReaderText } from './reader-dates.ts'
import { toSearchPath, type Search } from './search.ts'
import { signal } from '@preact/signals'
import { loadOnDemand } from '../load-on-demand.ts'

/** How long typing must rest before the results follow. */
const REST_MS = 250

interface SearchBoxOptions {
  project: string
  search: Search
  /** Why the server did not accept the search. */
  failure: Failure | undefined
}

/**
 * The search box. Results follow typing, and Enter does not wait. `/` focuses the box from
 * anywhere. An invalid search is explained, and the list stays as it is.
 */
export function SearchBox({ project, search, failure }: SearchBoxOptions) {
  const { route } = useLocation()
  const input = useRef<HTMLInputElement>(null)
  /** `typed` is the search that typing has started, unless it was left since. */
  const now = useRef({ typed: undefined as string | undefined, timer: 0, start }).current
  now.start = start
  const text = toReaderText(search.text)
  /** The invalid search that was entered last. */
  const [rejected, setRejected] = useState<string>()
  const explained = rejected ?? text
  const Explanation = tools.value?.needsExplanation(explained) && tools.value.Explanation
  const Completion = tools.value?.Completion
  const problem = failure
    ? toSentence(failure)
    : rejected === undefined && hasOpenTime(search.text)
      ? 'The address has a time without a time zone. Press Enter to use yours.'
      : undefined
  const isInvalid = problem !== undefined || parseTyped(explained).issues.length > 0

  useEffect(() => {
    // The box may have more by now.
    if (search.text === now.typed) return
    rest()
    if (input.current) input.current.value = text
    setRejected(undefined)
  }, [text, project])
  useEffect(() => rest, [])
  useEffect(() => {
    if (focusSearch.value) input.current?.select()
    focusSearch.value = false
  }, [])
  useEffect(() => {
    if (explained) loadTools()
  }, [explained])

  /** Another search will be a step of its own for Back. */
  function rest() {
    stopTimer()
    now.typed = undefined
  }

  function stopTimer() {
    clearTimeout(now.timer)
    now.timer = 0
  }

  /** Starts a search that waits. */
  function end() {
    if (now.timer) start(true)
    rest()
  }

  function follow() {
    stopTimer()
    now.timer = window.setTimeout(() => now.start(true), REST_MS)
  }

  function start(isTyping = false) {
    stopTimer()
    const box = input.current!
    const typed = box.value.trim()
    const exact = toExactText(typed)
    // The exact text can be too long.
    const wrong = [typed, exact].find(one => parseTyped(one).issues.length > 0)
    const isWaiting = isTyping && tools.value?.isUnfinished(box)
    setRejected(isWaiting ? undefined : wrong)
    if (isWaiting || wrong !== undefined) return
    const isSameStep = now.typed !== undefined
    if (!isTyping) rest()
    else if (exact !== search.text) now.typed = exact
    if (exact !== search.text) route(toSearchPath(project, { ...search, text: exact }), isSameStep)
    if (isTyping) return
    box.value = toReaderText(exact)
    // The on-screen keyboard would cover the results.
    if (matchMedia('(pointer: coarse)').matches) box.blur()
  }

  function submit(event: SubmitEvent) {
    event.preventDefault()
    start()
  }

  function fix(fixed: string) {
    if (input.current) input.current.value = fixed
    input.current?.focus()
    start()
  }

  function leave(event: KeyboardEvent) {
    if (event.key !== 'Escape' || isComposing(event)) return
    event.preventDefault()
    input.current?.blur()
    setRejected(undefined)
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
        aria-describedby={Explanation || problem ? 'search-issue' : undefined}
        aria-invalid={isInvalid}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        enterkeyhint="search"
        defaultValue={text}
        onInput={follow}
        onChange={follow}
        onBlur={end}
        onKeyDown={leave}
        onFocus={loadTools}
      />
      <kbd aria-hidden="true">/</kbd>
      {Explanation ? (
        <div class="search-note is-issue">
          <Explanation id="search-issue" text={explained} onFix={fix} />
        </div>
      ) : (
        problem && (
          <div class="search-note is-issue">
            <p id="search-issue" class="issue" role="alert">
              {problem}
            </p>
          </div>
        )
      )}
      {Completion && <Completion project={project} input={input} search={search} />}
    </form>
  )
}

/** Returns true if the text of an address has a time that would be valid only in the box. */
function hasOpenTime(text: string): boolean {
  return parseSearch(text).issues.length > parseTyped(text).issues.length
}

function toSentence({ details, message }: Failure): string {
  if (details.length === 0) return message
  return details
    .map(({ path, message }) => [...path.filter(name => name !== 'q'), message].join(': '))
    .join('. ')
}

/** Help with writing a search, once it is loaded. The search box also works without it. */
const tools = signal<Awaited<ReturnType<typeof loadOnDemand>>>()

/** Loads the help. A failure is tried again with the next call. */
export function loadTools(): void {
  loadOnDemand().then(
    all => (tools.value = all),
    () => {},
  )
}
