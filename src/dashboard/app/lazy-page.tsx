import type { FunctionComponent } from 'preact'
import { lazy } from 'preact-iso'
import { StandalonePage } from './components/standalone-page.tsx'
import type { Section } from './locales/languages.ts'
import { loadMessages, t } from './locales/translate.tsx'

/** Loads a page on demand. After an update of the server, the old script may no longer exist. */
export function lazyPage<Props extends object>(
  load: () => Promise<{ default: FunctionComponent<Props> }>,
) {
  return lazy<FunctionComponent<Props>>(() => load().catch(() => ({ default: OutdatedPage })))
}

/** Loads several pages as one script, with their messages; `find` picks one of them. */
export function lazyPages<All>(sections: readonly Section[], load: () => Promise<All>) {
  return <Props extends object>(find: (all: All) => FunctionComponent<Props>) =>
    lazyPage<Props>(async () => {
      const [all] = await Promise.all([load(), ...sections.map(loadMessages)])
      return { default: find(all) }
    })
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
    <StandalonePage title={t('app.outdated')} lead={t('app.outdatedLead')}>
      <p>{t('app.outdatedReason')}</p>
      <button class="button" type="button" onClick={() => location.reload()}>
        {t('app.reload')}
      </button>
    </StandalonePage>
  )
}
