import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { Logo, Backdrop } from './artwork.tsx'

interface StandalonePageOptions {
  title: string
  lead?: ComponentChildren
  children?: ComponentChildren
}

/** A page on the way in: one thing to do, and the landscape behind it. */
export function StandalonePage({ title, lead, children }: StandalonePageOptions) {
  useDocumentTitle(title)
  return (
    <div class="standalone">
      <Backdrop />
      <header class="standalone-top">
        <Logo />
        <span class="name">Tidings</span>
      </header>
      <main>
        <h1>{title}</h1>
        {lead !== undefined && <p class="lead">{lead}</p>}
        {children}
      </main>
    </div>
  )
}

/** The title of the browser's tab. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = title === 'Tidings' ? title : `${title} · Tidings`
  }, [title])
}

/** What went wrong where something should be, and the way to try again. */
export function ErrorNotice({ failure, onRetry }: { failure: Failure; onRetry(): void }) {
  return (
    <div class="error-notice" role="alert">
      <p>{failure.message}</p>
      <button class="button" type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  )
}
