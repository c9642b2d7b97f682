import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

interface SearchFormOptions {
  /** The accessible name of the input. */
  label: string
  placeholder: string
  text: string
  /** The path of the results for a text. */
  toPath(text: string): string
}

/** The search input of a list. */
export function SearchForm({ label, placeholder, text, toPath }: SearchFormOptions) {
  const { route } = useLocation()
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (input.current) input.current.value = text
  }, [text])

  function submit(event: SubmitEvent) {
    event.preventDefault()
    route(toPath(input.current?.value.trim() ?? ''))
  }

  return (
    <form class="search search-page" role="search" onSubmit={submit}>
      <Icon name="search" size={18} />
      <input
        ref={input}
        type="search"
        placeholder={placeholder}
        aria-label={label}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        enterkeyhint="search"
        maxLength={255}
        defaultValue={text}
      />
    </form>
  )
}
