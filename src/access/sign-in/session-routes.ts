import { Type, type Static } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { writeAudit } from '../audit/audit.ts'
import type { Refusals } from '../audit/refusals.ts'
import { transact } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { parseEmail } from '../../base/config/values.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { PageOf, SuccessOf } from '../../http/envelope.ts'
import { PageQuery } from '../../http/paging.ts'
import { parseId, toId } from '../../base/ids.ts'
import { toSignedOut } from '../guard/secret.ts'
import {
  findCredentials,
  lockCredentials,
  tryPassword,
  wrongCredentials,
  isPasswordUsable,
} from './credentials.ts'
import { succeedRead, type CallOn, type SessionGuard } from '../guard/guard.ts'
import { lockAccount } from './account.ts'
import { countRefusedSignIn } from '../guard/find-caller.ts'
import { Email, NoData, Password, SessionInfo } from '../guard/schema.ts'
import { Account, EndedSessions } from './schema.ts'
import { endSession, endSessions, listSessions } from '../guard/sessions.ts'
import { endOwnSession, signIn, type SignedIn } from './sign-in.ts'
import { createStep, hasSecondFactor, STEP_AGE_S } from './sign-in-steps.ts'
import { clearAttempts, repeatAttempt } from './throttle.ts'

const tags = ['Account']

const SignInBody = Type.Object(
  {
    email: Email,
    password: Password,
    isInstalled: Type.Optional(
      Type.Boolean({
        description:
          'True if an installed app signs in. With notifications on, it stays signed in longer.',
      }),
    ),
  },
  { examples: [{ email: 'ada@example.com', password: 'correct horse battery staple' }] },
)

const NeedsCode = Type.Object({ needs: Type.Literal('code') }, { additionalProperties: false })

interface Parts {
  guard: SessionGuard
  refusals: Pick<Refusals, 'count'>
  secrets: Pick<Secrets, 'seal'>
}

/** Routes to sign in and out, and to manage sessions. */
export function sessionRoutes(parts: Parts) {
  return new Elysia({ name: 'accounts.sessions' })
    .use(parts.guard)
    .post(
      '/api/session',
      async ({ call, body }) => {
        const signedIn = await signInByPassword(parts, call, body)
        if (signedIn.step === undefined) {
          return succeed(call, 200, signedIn.account, { cookies: signedIn.cookies })
        }
        const kept = call.cookies.keep('step', signedIn.step, STEP_AGE_S)
        return succeed(call, 202, { needs: 'code' }, { cookies: [kept] })
      },
      {
        anyone: 'session.create',
        body: SignInBody,
        response: {
          200: SuccessOf(Account, 'You are signed in. The cookie contains the session.'),
          202: SuccessOf(NeedsCode, 'The password is correct. Send a code next.'),
        },
        detail: {
          operationId: 'signIn',
          summary: 'Sign in',
          description:
            'If the account has an authenticator app, send its code to `/api/session/code` within 5 minutes.',
          tags,
        },
      },
    )
    .delete(
      '/api/session',
      async ({ call }) => {
        const { admitted, address, userAgent } = call
        if (admitted) {
          await transact(call.pool, tx => endOwnSession(tx, admitted, { address, userAgent }))
        }
        return succeed(call, 200, {}, toSignedOut(call.cookies))
      },
      {
        anyone: 'session.end',
        response: { 200: SuccessOf(NoData, 'You are signed out.') },
        detail: { operationId: 'signOut', summary: 'Sign out', tags },
      },
    )
    .get(
      '/api/sessions',
      ({ call, query }) => succeedRead(call, sql => listSessions(sql, call.admitted, query)),
      {
        account: 'sessions.read',
        query: PageQuery,
        response: { 200: SuccessOf(PageOf(SessionInfo), 'A page of your sessions.') },
        detail: { operationId: 'listSessions', summary: 'List your sessions', tags },
      },
    )
    .delete(
      '/api/sessions',
      async ({ call }) => {
        const sessionsEnded = await endAllSessions(call)
        return succeed(call, 200, { sessionsEnded }, toSignedOut(call.cookies))
      },
      {
        account: 'sessions.end',
        response: {
          200: SuccessOf(EndedSessions, 'All your sessions are ended, including this one.'),
        },
        detail: { operationId: 'endSessions', summary: 'End all your sessions', tags },
      },
    )
    .delete(
      '/api/sessions/:sessionId',
      async ({ call, params: { sessionId } }) => {
        const id = parseId('ses', sessionId)
        if (id === undefined || !(await endOneSession(call, id))) {
          throw new Fault('not_found', 'None of your sessions has this id')
        }
        const isOwn = id === call.admitted.session.id
        return succeed(call, 200, {}, isOwn ? toSignedOut(call.cookies) : undefined)
      },
      {
        account: 'sessions.end',
        response: { 200: SuccessOf(NoData, 'The session is ended.') },
        detail: { operationId: 'endSession', summary: 'End one of your sessions', tags },
      },
    )
}

async function signInByPassword(
  { refusals, secrets }: Parts,
  call: CallOn<'anyone'>,
  { email: typed, password, isInstalled }: Static<typeof SignInBody>,
): Promise<(SignedIn & { step?: undefined }) | { step: string }> {
  const email = parseEmail(typed) ?? ''
  const { address, userAgent, cookies } = call
  const device = cookies.read('device')
  const { found, scope } = await call.pool.run(sql =>
    findCredentials(sql, { email, address, device }),
  )
  if (!(await tryPassword(call.pool, scope, { password, credentials: found })) || !found) {
    const actor = { kind: 'anonymous', address, userAgent } as const
    // The entered address is not recorded, because people sometimes enter their password there.
    if (!found) countRefusedSignIn(refusals, actor, 'password')
    await transact(call.pool, tx =>
      found
        ? writeAudit(tx, actor, { action: 'session.refused', target: toId('per', found.accountId) })
        : repeatAttempt(tx, scope),
    )
    throw wrongCredentials()
  }
  return transact(call.pool, async tx => {
    await lockCredentials(tx, found)
    await clearAttempts(tx, scope)
    // Another error would tell strangers that the password is right.
    if (!(await isPasswordUsable(tx, found.accountId))) throw wrongCredentials()
    const { accountId } = found
    if (await hasSecondFactor(tx, accountId)) {
      const account = { accountId, isInstalled: isInstalled ?? false }
      return { step: await createStep(tx, secrets, account) }
    }
    return signIn(tx, call, { accountId, method: 'password', isInstalled })
  })
}

/** Returns the number of sessions that it ended. */
function endAllSessions({ pool, admitted, actor }: CallOn<'account'>): Promise<number> {
  const { id } = admitted.account
  return transact(pool, async tx => {
    await lockAccount(tx, id)
    const sessionsEnded = await endSessions(tx, id)
    await writeAudit(tx, actor, {
      action: 'sessions.ended',
      target: toId('per', id),
      details: { sessionsEnded },
    })
    return sessionsEnded
  })
}

/** Returns false if the account has no such session. */
function endOneSession({ pool, admitted, actor }: CallOn<'account'>, id: string): Promise<boolean> {
  return transact(pool, async tx => {
    if (!(await endSession(tx, admitted.account.id, id))) return false
    await writeAudit(tx, actor, { action: 'session.ended', target: toId('ses', id) })
    return true
  })
}
