import { parseEmail } from '../../base/config/values.ts'
import { takeStart, replaceDisruptive } from '../../base/display-text.ts'

/** The claims of a provider about a person, verified and normalized. */
export interface Profile {
  issuer: string
  subject: string
  /** As normalized by `parseEmail`. Undefined unless the provider has verified the address. */
  email: string | undefined
  name: string | undefined
  /** Undefined if the provider lists the groups elsewhere, because there are too many. */
  groups: readonly string[] | undefined
  /** The id of the session at the provider. */
  sid: string | undefined
  /** When the person last entered a credential, in Unix seconds by the clock of the provider. */
  authTime: number | undefined
  /** When the token was issued, by the same clock. */
  issuedAt: number
  isMultiFactor: boolean
}

const MAX_NAME = 100
const MAX_GROUPS = 1_000
const MAX_TEXT = 255

type Claims = Readonly<Record<string, unknown>>
type IdClaims = Claims & { iss: string; sub: string; iat: number }

/**
 * Reads the claims of a verified ID token. Those of the userinfo endpoint, `more`, complete the
 * name, the address and the groups. Those about the sign-in itself are in the token alone.
 */
export function toProfile(claims: IdClaims, more: Claims, groupsClaim: string): Profile {
  const all = { ...more, ...claims }
  const methods = claims['amr']
  return {
    issuer: claims.iss,
    subject: claims.sub,
    email:
      toVerifiedEmail(claims) ?? (contradicts(claims, more) ? undefined : toVerifiedEmail(more)),
    name: toName(all['name']) ?? toName(all['preferred_username']),
    groups: toGroups(all, groupsClaim),
    sid: toText(claims['sid']),
    authTime: typeof claims['auth_time'] === 'number' ? claims['auth_time'] : undefined,
    issuedAt: claims.iat,
    isMultiFactor: Array.isArray(methods) && methods.includes('mfa'),
  }
}

/** Returns the address of one source if the same source says that it is verified. */
function toVerifiedEmail(claims: Claims): string | undefined {
  return claims['email_verified'] === true ? parseEmail(toText(claims['email']) ?? '') : undefined
}

/** Returns whether the ID token names another address than `more`, or says it is unverified. */
function contradicts(claims: Claims, more: Claims): boolean {
  const hasOther = 'email' in claims && claims['email'] !== more['email']
  return hasOther || (claims['email_verified'] ?? true) !== true
}

/** Returns the groups in a claim, which is a list of texts or one text. */
function toGroups(claims: Claims, name: string): readonly string[] | undefined {
  const value = claims[name]
  // Entra ID lists more than 200 groups elsewhere (OpenID Connect Core §5.6.2).
  if (value === undefined && Object.hasOwn(Object(claims['_claim_names']), name)) return undefined
  const list: unknown[] = Array.isArray(value) ? value : [value]
  const groups = list.map(toText).filter(group => group !== undefined)
  return [...new Set(groups)].slice(0, MAX_GROUPS)
}

function toText(value: unknown): string | undefined {
  const isText = typeof value === 'string' && value !== '' && value.length <= MAX_TEXT
  return isText && value.isWellFormed() && !value.includes('\u0000') ? value : undefined
}

function toName(value: unknown): string | undefined {
  const name = takeStart(replaceDisruptive(toText(value) ?? '', '').trim(), MAX_NAME)
  return name.isWellFormed() && /[^\p{Default_Ignorable_Code_Point}\s]/u.test(name)
    ? name
    : undefined
}
