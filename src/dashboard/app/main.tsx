import { render } from 'preact'
import { App } from './app.tsx'
import './translation.ts'
import './unsaved.ts'
import './worker/install.ts'

const root = document.getElementById('app')
if (root) {
  root.replaceChildren()
  render(<App />, root)
}

addEventListener('load', () => {
  // Without it, as after a lost connection, the next visit registers the worker.
  import('./after-load.ts').then(({ followWorker }) => followWorker()).catch(() => {})
})

// A visible page clears the badge of the app icon.
document.addEventListener('visibilitychange', clearBadge)
clearBadge()

function clearBadge(): void {
  if (!document.hidden) (navigator as Partial<Navigator>).clearAppBadge?.().catch(() => {})
}
