import { SEALED_SUBSCRIPTIONS } from '../push/subscriptions.ts'
import { SEALED_VAPID_KEYS } from '../push/vapid.ts'
import { SEALED_WEBHOOKS } from '../webhooks/webhooks.ts'

/** Everything that is sealed at rest. */
export const SEALED_TABLES = [SEALED_SUBSCRIPTIONS, SEALED_VAPID_KEYS, SEALED_WEBHOOKS]
