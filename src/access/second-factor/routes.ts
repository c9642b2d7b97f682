import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import type { Tx } from '../../database/sql.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { toQrCode } from '../../http/qr-code.ts'
import { writeAudit } from '../audit/audit.ts'
import type { CallOn, SessionGuard } from '../guard/guard.ts'
import { Account } from '../sign-in/schema.ts'
import type { Cookies } from '../guard/secret.ts'
import { rotateSession, toCookieSeconds } from '../guard/sessions.ts'
import { getAccount, lockAccount, lockOwnAccount } from '../sign-in/account.ts'
import { hasSecondFactor } from '../sign-in/sign-in-steps.ts'
import type { ThrottleScope } from '../sign-in/throttle.ts'
import { removeSecondFactor } from '../sign-in/ways-in.ts'
import { acceptCode, confirmTotpSecret, createTotpSecret } from './authenticator-app.ts'
import { createRecoveryCodes } from './recovery-codes.ts'
import { CodeBody, RecoveryCodes, TotpSecret } from './schema.ts'
import { toTotpUri } from './totp.ts'
import { tryCode } from './try-code.ts'

const tags = ['Account']

export interface SecondFactorParts {
  guard: SessionGuard
  cookies: Cookies
  secrets: Secrets
}

/** Routes to set up the second factor of the password, and to confirm a session with a code. */
export function secondFactorRoutes({ guard, cookies, secrets }: SecondFactorParts) {
  /** Responds with the account, whose session has a new token and counts as multi-factor. */
  async function succeedWithSession(call: CallOn<'account'>, token: string) {
    const { session } = call.admitted
    const account = await call.pool.run(sql => getAccount(sql, call.admitted))
    const kept = cookies.keep('session', token, toCookieSeconds(session))
    return succeed(call, 200, account, { cookies: [kept] })
  }

  return new Elysia({ name: 'second-factor' })
    .use(guard)
    .post(
      '/api/second-factor',
      async ({ call }) => {
        const { id, email } = call.admitted.account
        const secret = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'secondFactor.create')
          return createTotpSecret(tx, secrets, id)
        })
        const uri = toTotpUri(secret, email)
        return succeed(call, 200, { secret, uri, qr: toQrCode(uri) })
      },
      {
        account: 'secondFactor.create',
        response: { 200: SuccessOf(TotpSecret, 'The secret. It counts after its first code.') },
        detail: {
          operationId: 'createSecondFactor',
          summary: 'Begin to set up an authenticator app',
          tags,
        },
      },
    )
    .post(
      '/api/second-factor/confirm',
      async ({ call, body: { code } }) => {
        const { actor, admitted } = call
        const token = await tryCode(call.pool, toScope(call), async tx => {
          await lockOwnAccount(tx, admitted, 'secondFactor.confirm')
          const of = { accountId: admitted.account.id, code, actor }
          return (await confirmTotpSecret(tx, secrets, of)) ? renewSession(tx, call) : undefined
        })
        return succeedWithSession(call, token)
      },
      {
        account: 'secondFactor.confirm',
        body: CodeBody,
        response: { 200: SuccessOf(Account, 'Signing in requires a code from now on.') },
        detail: {
          operationId: 'confirmSecondFactor',
          summary: 'Finish to set up an authenticator app with its first code',
          tags,
        },
      },
    )
    .delete(
      '/api/second-factor',
      async ({ call }) => {
        const { id } = call.admitted.account
        const account = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'secondFactor.remove')
          if (!(await hasSecondFactor(tx, id))) throw nothingToRemove()
          await removeSecondFactor(tx, id, call.admitted.session.id)
          const target = toId('per', id)
          await writeAudit(tx, call.actor, { action: 'secondFactor.removed', target })
          return getAccount(tx, call.admitted)
        })
        return succeed(call, 200, account)
      },
      {
        account: 'secondFactor.remove',
        response: { 200: SuccessOf(Account, 'The password alone signs in.') },
        detail: {
          operationId: 'removeSecondFactor',
          summary: 'Remove the authenticator app and the recovery codes',
          tags,
        },
      },
    )
    .post(
      '/api/second-factor/recovery-codes',
      async ({ call }) => {
        const { id } = call.admitted.account
        const codes = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted, 'secondFactor.createCodes')
          if (!(await hasSecondFactor(tx, id))) throw nothingToRemove()
          const target = toId('per', id)
          await writeAudit(tx, call.actor, { action: 'recoveryCodes.created', target })
          return createRecoveryCodes(tx, id)
        })
        return succeed(call, 201, { codes })
      },
      {
        account: 'secondFactor.createCodes',
        response: { 201: SuccessOf(RecoveryCodes, 'The codes. They are shown once.') },
        detail: {
          operationId: 'createRecoveryCodes',
          summary: 'Create ten recovery codes',
          description: 'Each works once instead of a code of the app. The former ones end.',
          tags,
        },
      },
    )
    .post(
      '/api/session/second-factor',
      async ({ call, body: { code } }) => {
        const { actor, admitted } = call
        const accountId = admitted.account.id
        const token = await tryCode(call.pool, toScope(call), async tx => {
          await lockAccount(tx, accountId)
          if (!(await hasSecondFactor(tx, accountId))) throw nothingToRemove()
          const method = await acceptCode(tx, secrets, { accountId, code })
          if (!method) return undefined
          const target = toId('ses', admitted.session.id)
          const details = { method }
          await writeAudit(tx, actor, { action: 'session.strengthened', target, details })
          return renewSession(tx, call)
        })
        return succeedWithSession(call, token)
      },
      {
        account: 'account.addSecondFactor',
        body: CodeBody,
        response: { 200: SuccessOf(Account, 'The session counts as multi-factor.') },
        detail: {
          operationId: 'addSecondFactorToSession',
          summary: 'Add the second factor to a session that began without it',
          tags,
        },
      },
    )
}

/** Failed codes count for the session, so that a stolen one cannot guess them. */
function toScope({ admitted: { account, session } }: CallOn<'account'>): ThrottleScope {
  const lane = { kind: 'session', sessionId: session.id } as const
  return { email: account.email, factor: 'code', lane }
}

/** Gives the session a new token, and the second factor. It is not a verification. */
function renewSession(tx: Tx, { admitted, token = '' }: CallOn<'account'>): Promise<string> {
  const { id } = admitted.session
  return rotateSession(tx, { id, token, isMultiFactor: true, isVerified: false })
}

function nothingToRemove(): Fault {
  return new Fault('conflict', 'Your account has no authenticator app')
}
