// Everything of the application that runs before the first paint, as one script.
import './theme-early.ts'
import { findFeedProject, isSignIn, sendEarly } from './early-requests.ts'

sendEarly(location)
// The first use of Intl takes long. The page has the time while its scripts load.
setTimeout(() => Intl.DateTimeFormat())
const { pathname } = location
// The script of the page loads beside the scripts that name it.
const script = isSignIn(pathname)
  ? '/assets/auth-pages-1.js'
  : findFeedProject(pathname) && '/assets/feed-1.js'
if (script) {
  const link = document.createElement('link')
  link.rel = 'modulepreload'
  link.href = script
  document.head.append(link)
}
