import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Tx } from '../db/sql.ts'
import type { Answer } from '../http/failures.ts'
import { toSuccess } from '../http/envelope.ts'
import { toId } from '../ids.ts'
import { getAccount } from './account.ts'
import { LONGEST_S, type Cookies } from './cookies.ts'
import { rememberDevice } from './devices.ts'
import { lockPerson } from './people.ts'
import type { Account } from './schema.ts'
import { hashSecret } from './secret.ts'
import {
  admitSession,
  boundSessions,
  createSession,
  endSession,
  toCookieSeconds,
  type Admitted,
} from './sessions.ts'

const MAX_SESSIONS = 100

/** The request of whoever signs in: their browser, and the session that it has already. */
export interface Visit {
  admitted: Admitted | undefined
  headers: Headers
  address: string
  userAgent: string
}

export interface SignedIn {
  account: Account
  /** Values of Set-Cookie: the session's, and that of the browser as a known one. */
  cookies: string[]
}

/**
 * Signs a person in whose password was right, or who has just chosen it. Nothing that the browser brought along goes
 * on: the session that it had is ended, and session and browser get new secrets.
 */
export async function signIn(
  tx: Tx,
  { admitted: before, headers, address, userAgent }: Visit,
  {
    personId,
    isInstalled = false,
    cookies,
  }: { personId: string; isInstalled?: boolean | undefined; cookies: Cookies },
): Promise<SignedIn> {
  await lockPerson(tx, personId)
  if (before) await endOwnSession(tx, before, { address, userAgent })
  const session = await createSession(tx, { personId, isInstalled, address, userAgent })
  await boundSessions(tx, personId, MAX_SESSIONS)
  const device = await rememberDevice(tx, personId, cookies.read(headers, 'device'))
  await writeAudit(
    tx,
    { kind: 'person', personId, sessionId: session.id, address, userAgent },
    { action: 'session.created', target: toId('ses', session.id), details: { isInstalled } },
  )
  const admitted = await admitSession(tx, { hash: hashSecret(session.token) })
  if (!admitted) throw new Error('A session that was just made is not there')
  return {
    account: await getAccount(tx, admitted),
    cookies: [
      cookies.keep('session', session.token, toCookieSeconds(admitted.session)),
      cookies.keep('device', device, LONGEST_S),
    ],
  }
}

/** Ends the session that a request came with. */
export async function endOwnSession(
  tx: Tx,
  { person, session }: Admitted,
  from: Pick<Actor, 'address' | 'userAgent'>,
): Promise<void> {
  if (!(await endSession(tx, person.id, session.id))) return
  await writeAudit(
    tx,
    { kind: 'person', personId: person.id, sessionId: session.id, ...from },
    { action: 'session.ended', target: toId('ses', session.id) },
  )
}

/** The answer to who is signed in from now on. */
export function toSignedInAnswer(
  status: 200 | 201,
  { account, cookies }: SignedIn,
  requestId: string,
): Answer {
  return { status, body: toSuccess(JSON.stringify(account), requestId), headers: {}, cookies }
}
