import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import { StandalonePage } from './components/standalone-page.tsx'

/** Loads a page on demand. After an update of the server, the old script may no longer exist. */
export function lazyPage<Props extends object>(
  load: () => Promise<{ default: FunctionComponent<Props> }>,
) {
  return lazy<FunctionComponent<Props>>(() => load().catch(() => ({ default: OutdatedPage })))
}

/** Loads several pages as one script; `find` picks one of them. */
export function lazyPages<All>(load: () => Promise<All>) {
  return <Props extends object>(find: (all: All) => FunctionComponent<Props>) =>
    lazyPage<Props>(async () => ({ default: find(await load()) }))
}

/** Loads the styles of a page together with its script. */
export async function loadWithStyle<All>(href: string, script: Promise<All>): Promise<All> {
  const loading = styles.get(href) ?? loadStyle(href)
  styles.set(href, loading)
  const [all] = await Promise.all([script, loading])
  return all
}

/** Loads a script with the styles of pages. */
export function loadWithPageStyle<All>(script: Promise<All>): Promise<All> {
  return loadWithStyle('/assets/pages.css', script)
}

const styles = new Map<string, Promise<unknown>>()

/** Loads a style sheet. A failure is tried again with the next page that needs it. */
function loadStyle(href: string): Promise<unknown> {
  const link = document.createElement('link')
  link.rel = 'stylesheet'
  link.href = href
  document.head.append(link)
  return new Promise((resolve, reject) => {
    link.onload = resolve
    link.onerror = () => {
      styles.delete(href)
      link.remove()
      reject(new Error(href))
    }
  })
}

function OutdatedPage() {
  return (
    <StandalonePage title="Reload to continue" lead="This page could not be loaded.">
      <p>The server may have been updated, or the connection was lost.</p>
      <button class="button" type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </StandalonePage>
  )
}
