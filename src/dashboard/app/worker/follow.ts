import { effect } from '@preact/signals'
import { syncSubscription } from '../push/browser.ts'
import { session } from '../session.ts'
import { registerWorker } from './register.ts'
import { APP_PATH, isDecodable } from '../paths.ts'
import { hasUnsaved } from '../unsaved.ts'
import type { PathAnswer, PathQuestion } from './ask.ts'

/** Registers the service worker, answers it, and keeps the push subscription current. */
export function followWorker(): void {
  answerNotificationClicks()
  // Signing out removes the worker.
  effect(() => {
    const { value } = session
    void registerWorker()
    if (value.kind === 'signed_in') void syncSubscription(value.account.person.id)
  })
}

/** Answers the service worker, which looks for a tab that can show the page of a notification. */
function answerNotificationClicks(): void {
  // Browsers have none over plain HTTP.
  const { serviceWorker } = navigator as Partial<Navigator>
  serviceWorker?.addEventListener('message', ({ data, ports }) => {
    // The worker may be of another version.
    const { path, mayOpen } = Object(data) as Partial<PathQuestion>
    if (typeof path === 'string') ports[0]?.postMessage(answer(path, mayOpen === true))
  })
}

function answer(path: string, mayOpen: boolean): PathAnswer {
  const { pathname, search } = location
  // A notification names an event without its project.
  if (pathname.endsWith(path) || pathname + search === path) return 'shown'
  if (!isFree() || !APP_PATH.test(path) || !isDecodable(path)) return 'busy'
  if (mayOpen) {
    history.pushState(null, '', path)
    dispatchEvent(new PopStateEvent('popstate'))
  }
  return 'free'
}

/** Returns whether another page can take the place of this one. */
function isFree(): boolean {
  const isSignedIn = session.value.kind === 'signed_in'
  return isSignedIn && !hasUnsaved() && !document.querySelector('dialog[open]')
}
