import { SEALED_PROVIDERS } from '../../access/openid/stored-providers.ts'
import { SEALED_TOTP_SECRETS } from '../../access/second-factor/authenticator-app.ts'
import { SEALED_SUBSCRIPTIONS } from '../../delivery/push/address.ts'
import { SEALED_VAPID_KEYS } from '../../delivery/push/vapid.ts'
import { SEALED_WEBHOOKS } from '../../delivery/webhooks/sealing.ts'
import { SEALED_ERASURE_KEYS } from '../../log/identities/erased-users.ts'

/** The tables with columns that are encrypted at rest. */
export const SEALED_TABLES = [
  SEALED_ERASURE_KEYS,
  SEALED_PROVIDERS,
  SEALED_SUBSCRIPTIONS,
  SEALED_TOTP_SECRETS,
  SEALED_VAPID_KEYS,
  SEALED_WEBHOOKS,
]
