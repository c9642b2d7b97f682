import { effect } from '@preact/signals'
import { render } from 'preact'
import { App } from './app.tsx'
// What the feed and the pages beside it share, so that it is one script with what all of them need.
import './feed/list.tsx'
import './feed/use-feed.ts'
import './event/tree.tsx'
import './parts/menu.tsx'
import './parts/new-password.tsx'
import { heal } from './push/browser.ts'
import { session } from './session.ts'
import './worker/install.ts'
import { register } from './worker/register.ts'

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

// What makes an app of the page waits until the page is there. Signing out takes the worker away.
addEventListener('load', () =>
  effect(() => {
    const { value } = session
    void register()
    if (value.kind === 'signed_in') void heal(value.account.person.id)
  }),
)

// Whoever looks at the app has seen what its icon tells of.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  const { clearAppBadge } = navigator as Partial<Navigator>
  if (!document.hidden) void clearAppBadge?.call(navigator).catch(() => {})
}
