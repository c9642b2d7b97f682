// Everything of the application that runs before the first paint, as one script.
import './theme-early.ts'
import { isSignIn, sendEarly } from './early-requests.ts'
import { toScriptUrl } from './worker/script-url.ts'

sendEarly(location)
new Worker(toScriptUrl('warm', '/assets/warm.js'))
// The script of the page loads beside the scripts that name it.
if (isSignIn(location.pathname)) {
  const link = document.createElement('link')
  link.rel = 'modulepreload'
  link.href = '/assets/auth-pages-1.js'
  document.head.append(link)
}
