import { toArray } from '../db/arrays.ts'
import { SERVER, writeAudit } from '../audit/audit.ts'
import { toId } from '../ids.ts'
import type { Loss } from '../secrets/reset.ts'
import { SEALED_SUBSCRIPTIONS } from './subscriptions.ts'
import { SEALED_VAPID_KEYS } from './vapid.ts'

/** What becomes of the VAPID key: it goes, another makes itself, and every subscription was for the one that is gone. */
export const VAPID_LOSS: Loss = {
  ...SEALED_VAPID_KEYS,
  what: count =>
    `${count} key for push notifications is made anew: every browser subscribes again by itself when its page is next open`,
  async drop(tx, ids) {
    await tx`delete from push_subscriptions`
    await tx`delete from vapid_keys where id = any(${toArray(ids)}::uuid[])`
    for (const id of ids) {
      await writeAudit(tx, SERVER, { action: 'push.keyLost', target: toId('vap', id) })
    }
  },
}

/** Subscriptions that nobody can open go; browsers make themselves known again. */
export const SUBSCRIPTION_LOSS: Loss = {
  ...SEALED_SUBSCRIPTIONS,
  what: count =>
    `${count} browsers get no push notifications until their page is next open: then they subscribe again by themselves`,
  async drop(tx, ids) {
    await tx`delete from push_subscriptions where id = any(${toArray(ids)}::uuid[])`
  },
}
