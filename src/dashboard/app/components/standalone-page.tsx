import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { showContent } from '../first-content.ts'
import { Backdrop } from './artwork.tsx'
import { Icon } from './icon.tsx'

interface StandalonePageOptions {
  title: string
  lead?: ComponentChildren
  children?: ComponentChildren
}

/** A page without navigation: auth pages, the quick start and error pages. */
export function StandalonePage({ title, lead, children }: StandalonePageOptions) {
  useDocumentTitle(title)
  return (
    <div class="standalone">
      <Backdrop />
      <header class="standalone-top">
        <Icon name="logo" size={28} />
        <span class="name">Tidings</span>
        <a href="/source">Source code</a>
      </header>
      <main>
        <h1>{title}</h1>
        {lead !== undefined && <p class="lead">{lead}</p>}
        {children}
      </main>
    </div>
  )
}

/** A page whose content is not known yet. */
export function LoadingPage() {
  return <div class="page-loading" role="status" aria-label="Loading" />
}

/** Sets the title of the browser tab once the page is there. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    showContent()
    document.title = title === 'Tidings' ? title : `${title} · Tidings`
  }, [title])
}

/** An error with a button to try again. */
export function ErrorNotice({ failure, onRetry }: { failure: Failure; onRetry(): void }) {
  return (
    <div class="error-notice" role="alert">
      <p>{failure.message}</p>
      <button class="button" type="button" onClick={onRetry}>
        Retry
      </button>
    </div>
  )
}
