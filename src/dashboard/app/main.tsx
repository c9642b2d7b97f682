import { effect } from '@preact/signals'
import { render } from 'preact'
import { App } from './app.tsx'
// What the feed and the pages beside it share, so that it is one script with what all of them need.
import './feed/feed-list.tsx'
import './feed/use-feed.ts'
import './event/json-tree.tsx'
import './components/menus.tsx'
import './components/new-password-field.tsx'
import { syncSubscription } from './push/browser.ts'
import { session } from './session.ts'
import './worker/install.ts'
import { registerWorker } from './worker/register.ts'

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

// What makes an app of the page waits until the page is there. Signing out takes the worker away.
addEventListener('load', () =>
  effect(() => {
    const { value } = session
    void registerWorker()
    if (value.kind === 'signed_in') void syncSubscription(value.account.person.id)
  }),
)

// Whoever looks at the app has seen what its icon tells of.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  const { clearAppBadge } = navigator as Partial<Navigator>
  if (!document.hidden) void clearAppBadge?.call(navigator).catch(() => {})
}
