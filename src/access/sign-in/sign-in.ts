import { toId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import { writeAudit, type Actor, type AuditRecord } from '../audit/audit.ts'
import type { SignInMethod } from '../guard/schema.ts'
import type { Account } from './schema.ts'
import { hashSecret, MAX_COOKIE_AGE_S, newSecret, type Cookies } from '../guard/secret.ts'
import {
  admitSession,
  createSession,
  endSession,
  renewSession,
  toCookieSeconds,
  type AdmittedSession,
  type Renewal,
} from '../guard/sessions.ts'
import { getAccount, lockAccount } from './account.ts'

const MAX_DEVICES = 20

/** A request that signs in. `admitted` is the session that its browser already has. */
export interface SignInRequest {
  admitted: AdmittedSession | undefined
  cookies: Cookies
  address: string
  userAgent: string
}

export interface SignedIn {
  account: Account
  /** The uuid of the session. */
  sessionId: string
  /** Values of Set-Cookie, for the session and the known browser. */
  cookies: string[]
}

export interface SignInOptions {
  accountId: string
  method: SignInMethod
  isInstalled?: boolean | undefined
  /** True if the account proved more than a password, such as a passkey or a code. */
  isMultiFactor?: boolean
  /** The uuid of the passkey, for the method `passkey`. */
  passkeyId?: string
}

/**
 * Signs an account in, after the caller has authenticated it. Every way in ends here. Ends the
 * browser's previous session. The session and the browser get new secrets.
 */
export async function signIn(
  tx: Tx,
  { admitted: before, cookies, address, userAgent }: SignInRequest,
  { accountId, method, isInstalled = false, isMultiFactor = false, passkeyId }: SignInOptions,
): Promise<SignedIn> {
  await lockAccount(tx, accountId)
  if (before) await endOwnSession(tx, before, { address, userAgent })
  const device = await rememberDevice(tx, accountId, cookies.read('device'))
  const session = await createSession(tx, {
    accountId,
    method,
    isInstalled,
    isMultiFactor,
    passkeyId,
    browserId: device.id,
    address,
    userAgent,
  })
  await writeAudit(
    tx,
    { kind: 'account', accountId, sessionId: session.id, address, userAgent },
    {
      action: 'session.created',
      target: toId('ses', session.id),
      details: { method, isMultiFactor, isInstalled },
    },
  )
  const admitted = await admitSession(tx, { hash: hashSecret(session.token) })
  if (!admitted) throw new Error('The session that was just created does not exist')
  return {
    account: await getAccount(tx, admitted),
    sessionId: session.id,
    cookies: [
      cookies.keep('session', session.token, toCookieSeconds(admitted.session)),
      cookies.keep('device', device.secret, MAX_COOKIE_AGE_S),
    ],
  }
}

interface VerifyOptions extends Renewal {
  /** The details of the audit entry. */
  details?: NonNullable<AuditRecord['details']>
}

/** Ends the session of a request. */
export async function endOwnSession(
  tx: Tx,
  { account, session }: AdmittedSession,
  from: Pick<Actor, 'address' | 'userAgent'>,
): Promise<void> {
  if (!(await endSession(tx, account.id, session.id))) return
  await writeAudit(
    tx,
    { kind: 'account', accountId: account.id, sessionId: session.id, ...from },
    { action: 'session.ended', target: toId('ses', session.id) },
  )
}

/**
 * Confirms the session of a request for 10 minutes, after its account was verified. Returns the
 * Set-Cookie value of its new token. Throws like `renewSession`.
 */
export async function verifySession(
  tx: Tx,
  call: { admitted: AdmittedSession; actor: Actor; cookies: Cookies },
  { details, ...renewal }: VerifyOptions = {},
): Promise<string> {
  const cookie = await renewSession(tx, call, renewal)
  const target = toId('ses', call.admitted.session.id)
  await writeAudit(tx, call.actor, {
    action: 'session.verified',
    target,
    ...(details && { details }),
  })
  return cookie
}

/**
 * Marks a browser as known to an account, which the caller has locked. Returns its id for the
 * account, and its new secret. The secret replaces `device`, the old one, for all accounts. An
 * account has at most 20 known browsers: the least recently used ones are forgotten.
 */
export async function rememberDevice(
  tx: Tx,
  accountId: string,
  device: string | undefined,
): Promise<{ id: string; secret: string }> {
  const fresh = newSecret(256)
  const hash = hashSecret(fresh)
  if (device !== undefined) {
    await tx`
      update known_devices set hash = decode(${hash}, 'hex')
      where hash = decode(${hashSecret(device)}, 'hex')
    `
  }
  const [known] = await tx<[{ id: string }]>`
    insert into known_devices (hash, account_id)
    values (decode(${hash}, 'hex'), ${accountId})
    on conflict (hash, account_id) do update set last_used_at = now()
    returning id
  `
  await tx`
    delete from known_devices
    where account_id = ${accountId} and hash in (
      select hash
      from known_devices
      where account_id = ${accountId}
      order by last_used_at desc, hash
      offset ${MAX_DEVICES}
    )
  `
  return { id: known.id, secret: fresh }
}

/** Forgets all known browsers of an account. */
export async function forgetDevices(tx: Tx, accountId: string): Promise<void> {
  await tx`delete from known_devices where account_id = ${accountId}`
}
