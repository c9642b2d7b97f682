import { effect } from '@preact/signals'
import { render } from 'preact'
import { App } from './app.tsx'
// Modules that several pages share, imported here so that they stay in the entry script.
import './components/menus.tsx'
import './components/sidebar.tsx'
import './components/toast.tsx'
import './components/top-bar.tsx'
import './event/use-event.ts'
import './feed/feed-list.tsx'
import './feed/reader-dates.ts'
import './feed/use-feed.ts'
import './feed/use-pause.ts'
import { syncSubscription } from './push/browser.ts'
import { session } from './session.ts'
import './translation.ts'
import './worker/install.ts'
import { registerWorker } from './worker/register.ts'

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

// The service worker is registered after the page has loaded. Signing out removes it.
addEventListener('load', () => {
  effect(() => {
    const { value } = session
    void registerWorker()
    if (value.kind === 'signed_in') void syncSubscription(value.account.person.id)
  })
})

// A visible page clears the badge of the app icon.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  if (!document.hidden) (navigator as Partial<Navigator>).clearAppBadge?.().catch(() => {})
}
