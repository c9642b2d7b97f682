import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import { QrCode, toQrCode } from '../../http/qr-code.ts'
import { Text } from '../../http/rules.ts'
import { closed } from '../../http/schema-parts.ts'
import { writeAudit } from '../audit/audit.ts'
import type { CallOn, SessionGuard } from '../guard/guard.ts'
import { Account } from '../sign-in/schema.ts'
import { renewSession } from '../guard/sessions.ts'
import { getAccount, lockAccount, lockOwnAccount } from '../sign-in/account.ts'
import { hasSecondFactor } from '../sign-in/sign-in-steps.ts'
import type { ThrottleScope } from '../sign-in/throttle.ts'
import { removeSecondFactor } from '../sign-in/ways-in.ts'
import { acceptCode, confirmTotpSecret, createTotpSecret, tryCode } from './authenticator-app.ts'
import { createRecoveryCodes } from './recovery-codes.ts'
import { toTotpUri } from './totp.ts'

const tags = ['Account']

/** A new secret for an authenticator app. */
const TotpSecret = Type.Object(
  {
    secret: Type.String({ description: 'In base32, for apps that cannot scan.' }),
    uri: Type.String({ examples: ['otpauth://totp/Tidings:ada@example.com?secret=…'] }),
    qr: QrCode,
  },
  closed,
)

const RecoveryCodes = Type.Object(
  { codes: Type.Array(Type.String({ examples: ['7k3q-m0zt-9hvw-2c8x'] })) },
  closed,
)

export const CodeBody = Type.Object(
  {
    code: Text({
      minLength: 1,
      maxLength: 64,
      description: 'The six digits of the authenticator app, or a recovery code.',
    }),
  },
  { examples: [{ code: '123456' }] },
)

export interface SecondFactorParts {
  guard: SessionGuard
  secrets: Secrets
}

/** Routes to set up the second factor of the password, and to confirm a session with a code. */
export function secondFactorRoutes({ guard, secrets }: SecondFactorParts) {
  /** Gives a session that proved the second factor a new token. It is not a verification. */
  const renewal = { isMultiFactor: true, isVerified: false }

  /** Responds with the account, whose session has a new cookie and counts as multi-factor. */
  async function succeedWithSession(call: CallOn<'account'>, cookie: string) {
    const account = await call.pool.run(sql => getAccount(sql, call.admitted))
    return succeed(call, 200, account, { cookies: [cookie] })
  }

  return new Elysia({ name: 'second-factor' })
    .use(guard)
    .post(
      '/api/second-factor',
      async ({ call }) => {
        const { id, email } = call.admitted.account
        const secret = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted)
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
        const cookie = await tryCode(call.pool, toScope(call), async tx => {
          await lockOwnAccount(tx, admitted)
          const of = { accountId: admitted.account.id, code, actor }
          const isConfirmed = await confirmTotpSecret(tx, secrets, of)
          return isConfirmed ? renewSession(tx, call, renewal) : undefined
        })
        return succeedWithSession(call, cookie)
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
          await lockOwnAccount(tx, call.admitted)
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
          await lockOwnAccount(tx, call.admitted)
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
        const cookie = await tryCode(call.pool, toScope(call), async tx => {
          await lockAccount(tx, accountId)
          if (!(await hasSecondFactor(tx, accountId))) throw nothingToRemove()
          const method = await acceptCode(tx, secrets, { accountId, code })
          if (!method) return undefined
          const target = toId('ses', admitted.session.id)
          const details = { method }
          await writeAudit(tx, actor, { action: 'session.strengthened', target, details })
          return renewSession(tx, call, renewal)
        })
        return succeedWithSession(call, cookie)
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

function nothingToRemove(): Fault {
  return new Fault('conflict', 'Your account has no authenticator app')
}
