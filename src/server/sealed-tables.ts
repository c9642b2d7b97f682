import { SEALED_PROVIDERS } from '../access/openid/providers.ts'
import { SEALED_TOTP_SECRETS } from '../access/second-factor/sealing.ts'
import { SEALED_ERASURE_KEYS } from '../log/identities/erased-users.ts'
import { SEALED_SUBSCRIPTIONS } from '../push/address.ts'
import { SEALED_VAPID_KEYS } from '../push/vapid.ts'
import { SEALED_WEBHOOKS } from '../webhooks/sealing.ts'

/** The tables with columns that are encrypted at rest. */
export const SEALED_TABLES = [
  SEALED_ERASURE_KEYS,
  SEALED_PROVIDERS,
  SEALED_SUBSCRIPTIONS,
  SEALED_TOTP_SECRETS,
  SEALED_VAPID_KEYS,
  SEALED_WEBHOOKS,
]
