import { computed, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { APP_PATH, PATHS } from './paths.ts'

// Links to pages of the application, and the browser's buttons, change the page without loading the
// document again. Other links, such as the API reference, are left to the browser.

const url = signal(readUrl())
const place = computed(() => {
  const { pathname, searchParams } = new URL(url.value, location.origin)
  const query: Readonly<Record<string, string>> = Object.fromEntries(searchParams)
  return { url: url.value, path: pathname.replace(/\/+$/, '') || '/', query, route }
})
/** True if the reader came to the page by a link, and not by the browser's buttons. */
let isPushed = false

addEventListener('click', openLink)
addEventListener('popstate', () => {
  isPushed = false
  url.value = readUrl()
})

/** The address of the page, and a function that opens another one. */
export function useLocation() {
  return place.value
}

/** Returns the name of the current path in `PATHS`, if it has one, and the values in the path. */
export function usePath() {
  const { path } = useLocation()
  useLayoutEffect(() => {
    if (isPushed) scrollTo(0, 0)
  }, [path])
  for (const name of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
    const values = match(PATHS[name], path)
    if (values) return { name, values }
  }
  return {}
}

/** Opens a page, in place of the current one in the browser's history if `isReplacing`. */
function route(to: string, isReplacing = false): void {
  isPushed = !isReplacing
  history[isReplacing ? 'replaceState' : 'pushState'](null, '', to)
  url.value = readUrl()
}

function readUrl(): string {
  return location.pathname + location.search
}

/** Opens the page of a link, unless the browser shall open it in another way. */
function openLink(event: MouseEvent): void {
  const { target, button, ctrlKey, metaKey, altKey, shiftKey } = event
  if (button !== 0 || ctrlKey || metaKey || altKey || shiftKey) return
  const link = target instanceof Element ? target.closest('a') : null
  const to = link?.getAttribute('href') ?? ''
  if (link?.target !== '' || !APP_PATH.test(to)) return
  event.preventDefault()
  route(to)
}

/** The values in a path, by their names in a pattern. Null if the path is another one. */
function match(pattern: string, path: string): Record<string, string> | null {
  const found = new RegExp(`^${pattern.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`).exec(path)
  const values = Object.entries(found?.groups ?? {})
  return (
    found && Object.fromEntries(values.map(([name, value]) => [name, decodeURIComponent(value)]))
  )
}
