// Everything of the application that runs before the first paint, as one script.
import './theme-early.ts'
import { findFeedProject, sendEarly } from './early-requests.ts'

sendEarly(location)
// The script of the feed loads beside the scripts that name it.
if (findFeedProject(location.pathname) !== undefined) {
  const link = document.createElement('link')
  link.rel = 'modulepreload'
  link.href = '/assets/feed-1.js'
  document.head.append(link)
}
