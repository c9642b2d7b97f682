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
  if (!document.querySelector(`link[href="${href}"]`)) {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = href
    const loaded = new Promise((resolve, reject) => {
      link.onload = resolve
      link.onerror = reject
    })
    document.head.append(link)
    await loaded
  }
  return script
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
