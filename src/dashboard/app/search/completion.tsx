import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isComposing } from '../key-press.ts'
import type { Search } from '../feed/search.ts'
import { Dates } from './dates.tsx'
import { applySuggestion, findFragment, type Fragment } from './fragment.ts'
import { suggestHere, suggestValues, type Option } from './suggest.ts'

const LIST = 'search-suggestions'
/** How long typing must rest before the server is asked. */
const REST_MS = 120

interface CompletionOptions {
  project: string
  input: RefObject<HTMLInputElement | null>
  search: Search
}

interface Offer {
  fragment: Fragment
  options: readonly Option[]
}

/**
 * Suggests filters and their values below the search box, which is a combobox: the arrow keys
 * choose, Enter or Tab takes the choice, and Escape closes the list. A button chooses days.
 */
export function Completion({ project, input, search }: CompletionOptions) {
  const [offer, setOffer] = useState<Offer>()
  const [active, setActive] = useState(-1)
  /** The current state for the listeners, which are added once. */
  const latest = useRef({ offer, active, take })
  latest.current = { offer, active, take }
  const isOpen = offer !== undefined && offer.options.length > 0

  function close() {
    setOffer(undefined)
    setActive(-1)
  }

  function take(option: Option) {
    const { current: box } = input
    if (!box || !offer) return
    const { text, caret } = applySuggestion(box.value, offer.fragment, option)
    box.value = text
    box.setSelectionRange(caret, caret)
    close()
    box.dispatchEvent(new Event(option.isWhole ? 'change' : 'input'))
  }

  useEffect(() => {
    const { current: box } = input
    if (!box) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let questions = 0
    const show = (fragment: Fragment, options: readonly Option[]) => {
      setActive(-1)
      setOffer({ fragment, options })
    }
    const look = () => {
      clearTimeout(timer)
      const question = ++questions
      const caret = box.selectionEnd ?? 0
      const fragment = findFragment(box.value, caret)
      if (!fragment || caret !== box.selectionStart) return close()
      const options = suggestHere(fragment)
      if (options) return show(fragment, options)
      // Until the server responds, the suggestions for the same term stay.
      setOffer(before =>
        before && isSameTerm(before.fragment, fragment) ? { ...before, fragment } : undefined,
      )
      timer = setTimeout(async () => {
        const found = await suggestValues(project, fragment)
        if (question === questions && document.activeElement === box) show(fragment, found)
      }, REST_MS)
    }
    const leave = () => {
      clearTimeout(timer)
      questions++
      close()
    }
    const press = (event: KeyboardEvent) => {
      const { offer, active, take } = latest.current
      const options = offer?.options ?? []
      const { key } = event
      const chosen = options[active]
      if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return
      if (key === 'ArrowDown' || key === 'ArrowUp') {
        if (options.length === 0) look()
        else {
          const step = key === 'ArrowDown' ? 1 : -1
          // Between the last and the first option, nothing is chosen.
          const next = ((active + 1 + step + options.length + 1) % (options.length + 1)) - 1
          // The next key may come before the page has rendered.
          latest.current.active = next
          setActive(next)
        }
      } else if ((key === 'Enter' || (key === 'Tab' && !event.shiftKey)) && chosen) take(chosen)
      else if (key === 'Escape' && options.length > 0) leave()
      else {
        if (key === 'Enter') leave()
        return
      }
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    // Without these suggestions it is a plain search box.
    box.setAttribute('role', 'combobox')
    box.setAttribute('aria-autocomplete', 'list')
    box.setAttribute('aria-controls', LIST)
    const end = new AbortController()
    box.addEventListener('input', look, end)
    box.addEventListener('click', look, end)
    box.addEventListener('focus', () => box.value === '' && look(), end)
    box.addEventListener('blur', leave, end)
    // Before the listeners of the search box itself.
    box.addEventListener('keydown', press, { capture: true, signal: end.signal })
    if (document.activeElement === box) look()
    return () => {
      clearTimeout(timer)
      end.abort()
    }
  }, [project])

  useEffect(() => {
    const { current: box } = input
    if (!box) return
    box.setAttribute('aria-expanded', String(isOpen))
    if (active < 0) box.removeAttribute('aria-activedescendant')
    else box.setAttribute('aria-activedescendant', toOptionId(active))
    document.getElementById(toOptionId(active))?.scrollIntoView({ block: 'nearest' })
  }, [isOpen, active])

  return (
    <>
      <Dates project={project} search={search} input={input} />
      <div class="search-note suggestions" hidden={!isOpen}>
        <ul
          id={LIST}
          role="listbox"
          aria-label="Suggestions"
          // Keeps the focus in the search box.
          onPointerDown={event => event.preventDefault()}
        >
          {offer?.options.map((option, n) => (
            <li
              key={option.term}
              id={toOptionId(n)}
              role="option"
              aria-selected={n === active}
              onClick={() => take(option)}
            >
              <bdi class={option.description ? 'suggestion-key' : undefined}>{option.name}</bdi>
              {option.label && <bdi class="suggestion-label">{option.label}</bdi>}
              {option.description && <span class="suggestion-label">{option.description}</span>}
            </li>
          ))}
        </ul>
        {offer?.fragment.key === '' && (
          <p>
            Words match by their beginnings. More: <code>"a phrase"</code>, <code>a OR b</code>,{' '}
            <code>(a OR b) c</code>, <code>-not</code>
          </p>
        )}
      </div>
    </>
  )
}

function isSameTerm(one: Fragment, other: Fragment): boolean {
  return one.key === other.key && one.start === other.start
}

function toOptionId(n: number): string {
  return `${LIST}-${n}`
}
