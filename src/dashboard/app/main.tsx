import { render } from 'preact'
import { App } from './app.tsx'
import { loadAfter } from './load-after.ts'
import './translation.ts'
import './unsaved.ts'
import { setBadge } from './worker/badge.ts'
import './worker/install.ts'

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

// Without it, as after a lost connection, the next visit registers the worker.
loadAfter().then(
  ({ followWorker }) => followWorker(),
  () => {},
)

// A visible page clears the badge of the app icon.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  if (!document.hidden) void setBadge(0)
}
