import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { StandalonePage } from './components/standalone-page.tsx'
import { QuietButton } from './components/buttons.tsx'

interface FailedOptions {
  onRetry(): void
  onClose?(): void
}

/**
 * Loads components on demand, as one script. Returns a function that takes the name of one. The
 * component shows nothing until then. If that fails, it shows `Failed` with the same options, and
 * tries again with each visit. After an update of the server, the old script may be gone.
 */
export function lazyPages<All>(
  load: () => Promise<All>,
  Failed: FunctionComponent<FailedOptions> = FailedPage,
) {
  return <Name extends keyof All>(name: Name) => {
    type Props = PropsOf<All[Name]>
    const loaded = signal<FunctionComponent<Props>>()
    const tryLoad = async () =>
      void (loaded.value ??= (await load())[name] as FunctionComponent<Props>)
    function Later(props: Props) {
      const [hasFailed, setFailed] = useState(false)
      const retry = () => {
        setFailed(false)
        tryLoad().catch(() => setFailed(true))
      }
      useLayoutEffect(retry, [])
      if (loaded.value) return <loaded.value {...props} />
      return hasFailed ? <Failed {...props} onRetry={retry} /> : null
    }
    return Object.assign(Later, { preload: () => tryLoad().catch(() => {}) })
  }
}

type PropsOf<Page> = Page extends (props: infer Props extends object) => unknown ? Props : object

/** Takes the place of a part of a page, or of a dialog, that could not be loaded. */
export function FailedPart({ onRetry, onClose }: FailedOptions) {
  return (
    <div class="error-notice" role="alert">
      <p>The connection was lost, or the server was updated.</p>
      <div class="actions">
        <button class="button" type="button" onClick={onRetry}>
          Retry
        </button>
        <QuietButton onClick={() => location.reload()}>Reload</QuietButton>
        {onClose && <QuietButton onClick={onClose}>Close</QuietButton>}
      </div>
    </div>
  )
}

/** Loads a script together with the styles of pages. */
export async function loadWithPageStyle<All>(script: Promise<All>): Promise<All> {
  style ??= loadStyle()
  const [all] = await Promise.all([script, style])
  return all
}

let style: Promise<unknown> | undefined

/** Loads the styles of pages. A failure is tried again with the next page that needs them. */
function loadStyle(): Promise<unknown> {
  const link = document.createElement('link')
  link.rel = 'stylesheet'
  link.href = '/assets/pages.css'
  document.head.append(link)
  return new Promise((resolve, reject) => {
    link.onload = resolve
    link.onerror = () => {
      style = undefined
      link.remove()
      reject(new Error(link.href))
    }
  })
}

function FailedPage({ onRetry }: FailedOptions) {
  return (
    <StandalonePage title="Page not loaded">
      <FailedPart onRetry={onRetry} />
    </StandalonePage>
  )
}
