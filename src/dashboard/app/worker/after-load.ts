// The work of a page with its service worker, loaded once the page is complete.
import { effect } from '@preact/signals'
import { syncSubscription } from '../push/browser.ts'
import { session } from '../session.ts'
import { answerNotificationClicks } from './notification-clicks.ts'
import { registerWorker } from './register.ts'

answerNotificationClicks()
// Signing out removes the worker.
effect(() => {
  const { value } = session
  void registerWorker()
  if (value.kind === 'signed_in') void syncSubscription(value.account.person.id)
})
