import { render } from 'preact'
import { App } from './app.tsx'
import './components/query.tsx'
import './components/menus.tsx'
import './components/sidebar.tsx'
import './components/toast.tsx'
import './event/use-neighbours.ts'
import './feed/feed-list.tsx'
import './feed/live-pill.tsx'
import './feed/reader-dates.ts'
import './feed/use-feed.ts'
import './feed/use-pause.ts'
import './translation.ts'
import './unsaved.ts'
import './worker/install.ts'

// Modules that several pages share, imported here so that they stay in the entry script.

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

addEventListener('load', () => {
  // Without it, as after a lost connection, the next visit registers the worker.
  import('./worker/after-load.ts').catch(() => {})
})

// A visible page clears the badge of the app icon.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  if (!document.hidden) (navigator as Partial<Navigator>).clearAppBadge?.().catch(() => {})
}
