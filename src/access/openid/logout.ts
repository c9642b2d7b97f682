import { jwtVerify } from 'jose'
import { toId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import { SERVER, writeAudit } from '../audit/audit.ts'
import { CLOCK_TOLERANCE_S, type ProviderClient } from './provider-client.ts'

/** Algorithms with a public key. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** The longest time between the creation and the arrival of a token. */
const MAX_AGE_S = 300
/** How long the id of a token is remembered: as long as the token could be accepted. */
export const LOGOUT_TOKEN_S = 2 * (MAX_AGE_S + 2 * CLOCK_TOLERANCE_S)

/** The sessions that a logout token ends: of one person, or one session at the provider. */
export interface Logout {
  issuer: string
  subject: string | undefined
  sid: string | undefined
  /** The id of the token. */
  jti: string
}

/**
 * Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6). Throws an error of `jose`
 * or a `TypeError`.
 */
export async function verifyLogoutToken(
  { configuration, keys }: ProviderClient,
  clientId: string,
  token: string,
): Promise<Logout> {
  const { issuer } = configuration.serverMetadata()
  const { payload } = await jwtVerify(token, keys, {
    issuer,
    audience: clientId,
    algorithms: ALGORITHMS,
    clockTolerance: CLOCK_TOLERANCE_S,
    maxTokenAge: MAX_AGE_S,
    requiredClaims: ['iat', 'jti', 'events'],
  })
  const { events, jti, sub, sid } = payload
  const isLogout =
    typeof events === 'object' && events !== null && Object.hasOwn(events, LOGOUT_EVENT)
  if (!isLogout) throw new TypeError('The token is not a logout token')
  if ('nonce' in payload) throw new TypeError('A logout token has no nonce')
  if (typeof jti !== 'string') throw new TypeError('The token has no id')
  const subject = typeof sub === 'string' ? sub : undefined
  const session = typeof sid === 'string' ? sid : undefined
  if (subject === undefined && session === undefined) {
    throw new TypeError('The token names neither a person nor a session')
  }
  return { issuer, subject, sid: session, jti }
}

/** Ends the sessions that a logout token names. Returns their number. */
export async function endProviderSessions(
  tx: Tx,
  provider: string,
  { issuer, subject, sid }: Logout,
): Promise<number> {
  const ended = await tx<{ id: string; account_id: string }[]>`
    delete from sessions s
    using openid_sessions o
    where o.session_id = s.id and o.provider = ${provider} and o.issuer = ${issuer}
      and (${subject ?? null}::text is null or o.subject = ${subject ?? null})
      and (${sid ?? null}::text is null or o.sid = ${sid ?? null})
    returning s.id, s.account_id
  `
  for (const { id } of ended) {
    const details = { provider }
    await writeAudit(tx, SERVER, { action: 'session.ended', target: toId('ses', id), details })
  }
  return ended.length
}
