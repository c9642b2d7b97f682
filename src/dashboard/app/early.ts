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
  // The scripts of the page load beside the script that names them.
  const scripts = isSignIn(location.pathname)
    ? ['/assets/auth-pages-1.js']
    : location.pathname.includes('/e/')
      ? ['/assets/after-load-1.js', '/assets/on-demand-1.js']
      : []
  for (const href of scripts) {
    const link = document.createElement('link')
    link.rel = 'modulepreload'
    link.href = href
    document.head.append(link)
  }
}
