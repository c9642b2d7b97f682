// Everything of the application that runs before the first paint, as one script.
import './theme-early.ts'
import { isSignIn, sendEarly } from './early-requests.ts'
import { toScriptUrl } from './worker/script-url.ts'

// The first use of Intl takes long, and the process keeps what it loads. A worker, which runs this
// script, too, loads it beside the page.
if ('document' in globalThis) begin()
else {
  Intl.DateTimeFormat()
  close()
}

function begin(): void {
  sendEarly(location)
  const { src } = document.currentScript as HTMLScriptElement
  new Worker(toScriptUrl('warm', src))
  // The script of the page loads beside the scripts that name it.
  if (!isSignIn(location.pathname)) return
  const link = document.createElement('link')
  link.rel = 'modulepreload'
  link.href = '/assets/auth-pages-1.js'
  document.head.append(link)
}
