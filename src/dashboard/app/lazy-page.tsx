import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { StandalonePage } from './components/standalone-page.tsx'
import { QuietButton } from './components/buttons.tsx'

interface FailedOptions {
  onRetry(): void
  onClose?(): void
}

/**
 * Loads a component on demand, and again whenever it is shown after a failure. `Failed` is shown
 * until then, with the same options. After an update of the server, the old script may be gone.
 */
export function lazyPage<Props extends object>(
  load: () => Promise<{ default: FunctionComponent<Props> }>,
  Failed: FunctionComponent<FailedOptions> = FailedPage,
) {
  const loaded = signal<FunctionComponent<Props>>()
  const tryLoad = async () => void (loaded.value = (await load()).default)
  function Later(props: Props) {
    const [hasFailed, setFailed] = useState(false)
    const retry = () => {
      setFailed(false)
      tryLoad().catch(() => setFailed(true))
    }
    useEffect(retry, [])
    if (loaded.value) return <loaded.value {...props} />
    return hasFailed ? <Failed {...props} onRetry={retry} /> : null
  }
  return lazy<FunctionComponent<Props>>(async () => {
    await tryLoad().catch(() => {})
    return { default: loaded.value ?? Later }
  })
}

/** Loads several components as one script. Returns a function that takes the name of one. */
export function lazyPages<All>(
  load: () => Promise<All>,
  Failed?: FunctionComponent<FailedOptions>,
) {
  return <Name extends keyof All>(name: Name) => {
    type Page = FunctionComponent<PropsOf<All[Name]>>
    return lazyPage(async () => ({ default: (await load())[name] as Page }), Failed)
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

function FailedPage({ onRetry }: FailedOptions) {
  return (
    <StandalonePage title="Page not loaded">
      <FailedPart onRetry={onRetry} />
    </StandalonePage>
  )
}
