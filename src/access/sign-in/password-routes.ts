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
import {
  checkPassword,
  type Credentials,
  getCredentials,
  hashPassword,
  lockCredentials,
  tryPassword,
  wrongCredentials,
  requirePasswords,
  requireUsablePassword,
} from './credentials.ts'
import type { CallOn, SessionGuard } from '../guard/guard.ts'
import { requireVerified } from '../guard/authorize.ts'
import { withdrawResetLinks } from './reset-links.ts'
import { Password } from '../guard/schema.ts'
import { Account, EndedSessions } from './schema.ts'
import { endSessions, renewSession } from '../guard/sessions.ts'
import { verifySession } from './sign-in.ts'
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
  issuers: readonly string[]
}

/** Routes that confirm or change the password of the signed-in account. */
export function passwordRoutes({ guard, issuers }: Parts) {
  return new Elysia({ name: 'accounts.password' })
    .use(guard)
    .post(
      '/api/session/verify',
      async ({ call, body: { password } }) => {
        const { cookie, account } = await verifyPassword(call, password)
        return succeed(call, 200, account, { cookies: [cookie] })
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
        const { cookie, sessionsEnded } = await changePassword(call, body)
        return succeed(call, 200, { sessionsEnded }, { cookies: [cookie] })
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

/** Confirms the password for 10 minutes. Returns the cookie with the session's new token. */
async function verifyPassword(
  call: CallOn<'account'>,
  password: string,
): Promise<{ cookie: string; account: Account }> {
  const credentials = await confirmPassword(call, password)
  return transact(call.pool, async tx => {
    await useCredentials(tx, call, credentials)
    const cookie = await verifySession(tx, call)
    return { cookie, account: await getAccount(tx, { ...call.admitted, isVerified: true }) }
  })
}

async function changePassword(
  call: CallOn<'account'>,
  { currentPassword, newPassword }: Static<typeof PasswordChange>,
): Promise<{ cookie: string; sessionsEnded: number }> {
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
  const hash = await hashPassword(newPassword, account.email)
  return transact(call.pool, async tx => {
    await lockOwnAccount(tx, admitted)
    await useCredentials(tx, call, credentials)
    const cookie = await renewSession(tx, call)
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
    return { cookie, sessionsEnded }
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
    await lockOwnAccount(tx, admitted)
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

/** Locks the account of a confirmed password that can be used, and forgets its failed attempts. */
async function useCredentials(
  tx: Tx,
  { admitted: { session } }: CallOn<'account'>,
  credentials: Credentials,
): Promise<void> {
  await lockCredentials(tx, credentials)
  await requireUsablePassword(tx, credentials.accountId)
  await clearAttempts(tx, toSessionScope(session.id, credentials))
}

function toSessionScope(sessionId: string, { email }: Credentials): ThrottleScope {
  return { email, factor: 'password', lane: { kind: 'session', sessionId } }
}
