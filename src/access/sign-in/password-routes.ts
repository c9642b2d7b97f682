import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { writeAudit } from '../audit/audit.ts'
import type { Tx } from '../../database/sql.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { Fault } from '../../base/errors.ts'
import { invalidField } from '../../http/validation.ts'
import { toId } from '../../base/ids.ts'
import { normalizePassword } from '../../base/passwords/policy.ts'
import { getAccount, lockOwnAccount } from './account.ts'
import type { Cookies } from '../guard/secret.ts'
import {
  checkPassword,
  type Credentials,
  getCredentials,
  hashPassword,
  lockCredentials,
  tryPassword,
  wrongCredentials,
} from './credentials.ts'
import type { CallOn, SessionGuard } from '../guard/guard.ts'
import { requireVerified } from '../guard/permissions.ts'
import { requirePasswords, requireUsablePassword } from './password-switch.ts'
import { withdrawResetLinks } from './reset-links.ts'
import { Password } from '../guard/schema.ts'
import { Account, EndedSessions } from './schema.ts'
import { endSessions, rotateSession, toCookieSeconds } from '../guard/sessions.ts'
import { clearAttempts, type ThrottleScope } from './throttle.ts'
import { removeSecondFactor, requireWayIn } from './ways-in.ts'

const tags = ['Account']

const PasswordChange = Type.Object(
  {
    currentPassword: Type.Optional(Password),
    newPassword: Password,
  },
  {
    examples: [
      {
        currentPassword: 'correct horse battery staple',
        newPassword: 'another horse battery staple',
      },
    ],
  },
)

interface Parts {
  guard: SessionGuard
  cookies: Cookies
  issuers: readonly string[]
}

/** Routes that confirm or change the password of the signed-in account. */
export function passwordRoutes({ guard, cookies, issuers }: Parts) {
  function keepSession({ admitted: { session } }: CallOn<'account'>, token: string): string {
    return cookies.keep('session', token, toCookieSeconds(session))
  }

  return new Elysia({ name: 'accounts.password' })
    .use(guard)
    .post(
      '/api/session/verify',
      async ({ call, body: { password } }) => {
        const { fresh, account } = await verifySession(call, password)
        return succeed(call, 200, account, { cookies: [keepSession(call, fresh)] })
      },
      {
        account: 'account.verify',
        body: Type.Object(
          { password: Password },
          { examples: [{ password: 'correct horse battery staple' }] },
        ),
        response: { 200: SuccessOf(Account, 'The password is correct.') },
        detail: {
          operationId: 'verifyPassword',
          summary: 'Confirm that it is you with your password',
          description:
            'For 10 minutes, the session can do actions that require a verification. It gets a new cookie.',
          tags,
        },
      },
    )
    .put(
      '/api/me/password',
      async ({ call, body }) => {
        const { fresh, sessionsEnded } = await changePassword(call, body)
        return succeed(call, 200, { sessionsEnded }, { cookies: [keepSession(call, fresh)] })
      },
      {
        account: 'account.changePassword',
        body: PasswordChange,
        response: { 200: SuccessOf(EndedSessions, 'The password is changed.') },
        detail: {
          operationId: 'changePassword',
          summary: 'Change or set your password',
          description:
            'Ends your other sessions. This one gets a new cookie. An account without a password sends no `currentPassword`, and requires a verification.',
          tags,
        },
      },
    )
    .delete(
      '/api/me/password',
      async ({ call }) => succeed(call, 200, await removePassword(call, issuers)),
      {
        account: 'account.removePassword',
        response: { 200: SuccessOf(Account, 'The account has no password.') },
        detail: {
          operationId: 'removePassword',
          summary: 'Remove your password',
          description:
            'Requires another way to sign in, such as a passkey. Removes your codes, too.',
          tags,
        },
      },
    )
}

/** Confirms the password for 10 minutes. Returns the session's new token as `fresh`. */
async function verifySession(
  call: CallOn<'account'>,
  password: string,
): Promise<{ fresh: string; account: Account }> {
  const { admitted, actor } = call
  const credentials = await confirmPassword(call, password)
  return transact(call.pool, async tx => {
    const fresh = await renewSession(tx, call, credentials)
    await writeAudit(tx, actor, {
      action: 'session.verified',
      target: toId('ses', admitted.session.id),
    })
    return { fresh, account: await getAccount(tx, { ...admitted, isVerified: true }) }
  })
}

async function changePassword(
  call: CallOn<'account'>,
  { currentPassword, newPassword }: Static<typeof PasswordChange>,
): Promise<{ fresh: string; sessionsEnded: number }> {
  const { actor, admitted } = call
  const { account, session } = admitted
  // A password that is set here would not work.
  await call.pool.run(requirePasswords)
  checkPassword(newPassword, account, 'newPassword')
  const stored = await call.pool.run(sql => getCredentials(sql, account.id))
  const credentials =
    stored.hash === null
      ? confirmAbsence(call, stored)
      : await confirmPassword(call, requireNew(currentPassword, newPassword))
  const hash = await hashPassword(newPassword)
  return transact(call.pool, async tx => {
    await lockOwnAccount(tx, admitted, 'account.changePassword')
    const fresh = await renewSession(tx, call, credentials)
    await tx`
      update accounts set password_hash = ${hash}, is_password_from_machine = false
      where id = ${account.id}
    `
    const sessionsEnded = await endSessions(tx, account.id, session.id)
    await withdrawResetLinks(tx, actor, account.id)
    await writeAudit(tx, actor, {
      action: 'password.changed',
      target: toId('per', account.id),
      details: { sessionsEnded },
    })
    return { fresh, sessionsEnded }
  })
}

/** Returns the current password of a change. Throws `InvalidRequest` if it stays the same. */
function requireNew(currentPassword: string | undefined, newPassword: string): string {
  if (currentPassword === undefined) throw invalidField('currentPassword', 'required', 'Required')
  if (normalizePassword(newPassword) !== normalizePassword(currentPassword)) return currentPassword
  throw invalidField('newPassword', 'invalid_value', 'Must differ from the current password')
}

/** Throws `verification_needed` for an account without a password, which has none to confirm. */
function confirmAbsence({ admitted }: CallOn<'account'>, stored: Credentials): Credentials {
  requireVerified(admitted)
  return stored
}

/**
 * Removes the password, and with it the codes that belong to it. Throws `conflict` if it is the
 * last way to sign in, or if there is none.
 */
async function removePassword(
  { pool, actor, admitted }: CallOn<'account'>,
  issuers: readonly string[],
): Promise<Account> {
  const { id } = admitted.account
  return transact(pool, async tx => {
    await lockOwnAccount(tx, admitted, 'account.removePassword')
    const removed = await tx`
      update accounts set password_hash = null where id = ${id} and password_hash is not null
    `
    if (removed.count === 0) throw new Fault('conflict', 'Your account has no password')
    await requireWayIn(tx, id, issuers)
    await removeSecondFactor(tx, id, admitted.session.id)
    await withdrawResetLinks(tx, actor, id)
    await writeAudit(tx, actor, { action: 'password.removed', target: toId('per', id) })
    return getAccount(tx, admitted)
  })
}

/**
 * Throws `wrong_credentials` for a wrong password. Failed attempts count, so that a stolen session
 * cannot guess it.
 */
async function confirmPassword(
  { pool, admitted: { account, session }, actor }: CallOn<'account'>,
  password: string,
): Promise<Credentials> {
  const credentials = await pool.run(sql => getCredentials(sql, account.id))
  const scope = toSessionScope(session.id, credentials)
  if (await tryPassword(pool, scope, { password, credentials })) return credentials
  await transact(pool, tx =>
    writeAudit(tx, actor, { action: 'password.refused', target: toId('per', account.id) }),
  )
  throw wrongCredentials()
}

/** Replaces the token of a session whose password was confirmed. Returns the new token. */
async function renewSession(
  tx: Tx,
  { admitted: { session }, token = '' }: CallOn<'account'>,
  credentials: Credentials,
): Promise<string> {
  await lockCredentials(tx, credentials)
  await requireUsablePassword(tx, credentials.accountId)
  await clearAttempts(tx, toSessionScope(session.id, credentials))
  return rotateSession(tx, { id: session.id, token })
}

function toSessionScope(sessionId: string, { email }: Credentials): ThrottleScope {
  return { email, factor: 'password', lane: { kind: 'session', sessionId } }
}
