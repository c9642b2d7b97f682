// Everything of the application that runs before the first paint, as one script.
import './theme-early.ts'
import { isSignIn, sendEarly } from './early-requests.ts'

sendEarly(location)
// The first use of Intl takes long. The page has the time while its scripts load.
setTimeout(() => Intl.DateTimeFormat())
// The script of the page loads beside the scripts that name it.
if (isSignIn(location.pathname)) {
  const link = document.createElement('link')
  link.rel = 'modulepreload'
  link.href = '/assets/auth-pages-1.js'
  document.head.append(link)
}
