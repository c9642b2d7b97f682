import { Type, type Static } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Queryable } from '../../database/sql.ts'
import { hashSecret, type Cookies } from '../guard/secret.ts'
import type { Profile } from './profile.ts'
import { PURPOSES } from './schema.ts'

const FLOW_S = 600

const Visit = Type.Object({
  kind: Type.Literal('visit'),
  /** The name of the provider, which is also in the path of the callback. */
  provider: Type.String(),
  issuer: Type.String(),
  state: Type.String(),
  nonce: Type.String(),
  verifier: Type.String(),
  purpose: Type.Union(PURPOSES.map(purpose => Type.Literal(purpose))),
  /** The path to open afterwards. */
  next: Type.String(),
  /** The uuid of the session that connects or verifies. */
  sessionId: Type.Union([Type.String(), Type.Null()]),
  /** The secret of the invite to accept. */
  invite: Type.Union([Type.String(), Type.Null()]),
  isInstalled: Type.Boolean(),
  startedAtMs: Type.Number(),
})

const Confirmation = Type.Object({
  kind: Type.Literal('confirmation'),
  provider: Type.String(),
  issuer: Type.String(),
  subject: Type.String(),
  /** The verified e-mail address at the provider. */
  email: Type.String(),
  startedAtMs: Type.Number(),
})

/** A visit to a provider that has begun in this browser. */
export type Visit = Static<typeof Visit>
/** An identity at a provider that waits until its account is signed in. */
type Confirmation = Static<typeof Confirmation>

const checkFlow = TypeCompiler.Compile(Type.Union([Visit, Confirmation]))

/** Returns what a browser keeps until the account is signed in in another way. */
export function toConfirmation({
  provider,
  profile,
}: {
  provider: { name: string }
  profile: Pick<Profile, 'issuer' | 'subject' | 'email'>
}): Confirmation {
  const { issuer, subject, email = '' } = profile
  const identity = { provider: provider.name, issuer, subject, email }
  return { kind: 'confirmation', ...identity, startedAtMs: Date.now() }
}

/** The cell that flows are sealed for. No table has it. */
const CELL = { table: 'openid_flows', column: 'cookie', rowId: '' }

/**
 * Returns a Set-Cookie value that keeps what a browser has begun, sealed, for 10 minutes. So nobody
 * else can continue it, and strangers fill no table. It replaces what was begun before.
 */
export function keepFlow(
  secrets: Pick<Secrets, 'seal'>,
  cookies: Cookies,
  flow: Visit | Confirmation,
): string {
  return cookies.keep('openid', secrets.seal(JSON.stringify(flow), CELL), FLOW_S)
}

/** Returns what the browser has begun, if it is not over. */
export function readFlow(
  secrets: Pick<Secrets, 'open'>,
  cookies: Cookies,
): Visit | Confirmation | undefined {
  const sealed = cookies.read('openid')
  if (sealed === undefined) return undefined
  let flow: unknown
  try {
    flow = JSON.parse(secrets.open(sealed, CELL))
  } catch {
    return undefined
  }
  return checkFlow.Check(flow) && flow.startedAtMs > Date.now() - FLOW_S * 1000 ? flow : undefined
}

/**
 * Marks a state or the id of a logout token as used, for as long as it could be accepted. Returns
 * false if it was used before.
 */
export async function markUsed(sql: Queryable, value: string, seconds: number): Promise<boolean> {
  const marked = await sql`
    insert into openid_used (hash, expires_at)
    values (decode(${hashSecret(value)}, 'hex'), now() + ${seconds} * interval '1 second')
    on conflict (hash) do nothing
  `
  return marked.count === 1
}

/**
 * Why a visit to a provider did not end in a session. The sign-in page explains each:
 * `cancelled` at the provider, `expired` or used state, `unavailable` provider, `invalid` response,
 * `clock` of the two servers too far apart, `unverified` e-mail address, `unknown` person,
 * `otherAccount` or `otherIdentity` connected already, `address` differs from that of the account,
 * `invite` is not open to this address, `groups` not sent, `stale` credential at a verification.
 */
export type ProblemCode =
  | 'cancelled'
  | 'expired'
  | 'unavailable'
  | 'invalid'
  | 'clock'
  | 'unverified'
  | 'unknown'
  | 'otherAccount'
  | 'otherIdentity'
  | 'address'
  | 'invite'
  | 'groups'
  | 'stale'

/** An expected failure of a visit to a provider. */
export class VisitProblem extends Error {
  readonly code: ProblemCode

  constructor(code: ProblemCode) {
    super(code)
    this.name = 'VisitProblem'
    this.code = code
  }
}
