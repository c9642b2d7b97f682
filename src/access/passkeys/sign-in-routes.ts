import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { transact } from '../../database/pool.ts'
import type { Tx } from '../../database/sql.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Actor } from '../audit/audit.ts'
import { Account } from '../sign-in/schema.ts'
import type { SessionCall } from '../guard/guard.ts'
import { newSecret } from '../guard/secret.ts'
import { getAccount, lockAccount } from '../sign-in/account.ts'
import { signIn, verifySession } from '../sign-in/sign-in.ts'
import {
  CHALLENGE_AGE_S,
  checkChallenge,
  createChallenge,
  useChallenge,
  type ChallengePurpose,
} from './challenges.ts'
import {
  findPasskey,
  listCredentials,
  recordUse,
  toUserHandle,
  type StoredPasskey,
} from './passkeys.ts'
import type { PasskeyParts } from './routes.ts'
import { SignInBody, VerifyBody, WebAuthnOptions, type Assertion } from './schema.ts'
import { readChallenge, toRelyingParty, verifyAssertion } from './webauthn.ts'

const tags = ['Account']

/** A passkey whose signature was verified. */
interface Proof {
  passkey: StoredPasskey
  challenge: string
  use: { counter: number; isSynced: boolean }
}

/** Routes to sign in with a passkey, and to confirm with one that the account is present. */
export function passkeySignInRoutes({ guard, site, secrets }: PasskeyParts) {
  /** Verifies a signature, and writes nothing. Throws `wrong_credentials` or `conflict`. */
  async function prove(
    { pool, countFailure }: SessionCall,
    credential: Assertion,
    expected: { purpose: ChallengePurpose; binding: string; accountId?: string },
  ): Promise<Proof> {
    const challenge = readChallenge(credential)
    checkChallenge(secrets, challenge, expected)
    const passkey = await pool.run(sql => findPasskey(sql, credential.id))
    const isExpected = expected.accountId === undefined || passkey?.accountId === expected.accountId
    // The handle is empty if the request named the passkeys. It is not signed.
    const { userHandle } = credential.response
    const isOwnHandle = !userHandle || userHandle === toUserHandle(passkey?.accountId ?? '')
    if (!passkey || !isExpected || !isOwnHandle) {
      await countFailure()
      throw unknownPasskey()
    }
    const { publicKey } = passkey
    const stored = { credentialId: credential.id, publicKey, challenge }
    const use = await verifyAssertion(toRelyingParty(site), credential, stored)
    if (passkey.isDisabled) throw disabledPasskey()
    return { passkey, challenge, use }
  }

  return new Elysia({ name: 'passkeys.sign-in' })
    .use(guard)
    .post(
      '/api/session/passkey/options',
      async ({ call }) => {
        const { id: rpId } = toRelyingParty(site)
        // Several pages of one browser share the cookie.
        const binding = call.cookies.read('challenge') ?? newSecret(256)
        const options = toOptions(rpId, createChallenge(secrets, 'sign in', binding))
        const kept = call.cookies.keep('challenge', binding, CHALLENGE_AGE_S)
        return succeed(call, 200, options, { cookies: [kept] })
      },
      {
        anyone: 'session.create',
        response: { 200: SuccessOf(WebAuthnOptions, 'The options to sign in with a passkey.') },
        detail: {
          operationId: 'getPasskeyOptions',
          summary: 'Get the options to sign in with a passkey',
          description: 'The challenge is valid in this browser alone, by its cookie.',
          tags,
        },
      },
    )
    .post(
      '/api/session/passkey',
      async ({ call, body: { credential, isInstalled } }) => {
        const binding = call.cookies.read('challenge') ?? ''
        const proof = await prove(call, credential, { purpose: 'sign in', binding })
        const { passkey } = proof
        const signedIn = await usePasskey(call, proof, tx =>
          signIn(tx, call, {
            accountId: passkey.accountId,
            method: 'passkey',
            isInstalled,
            isMultiFactor: true,
            passkeyId: passkey.id,
          }),
        )
        return succeed(call, 200, signedIn.account, {
          cookies: [...signedIn.cookies, call.cookies.clear('challenge')],
        })
      },
      {
        anyone: 'session.create',
        body: SignInBody,
        response: {
          200: SuccessOf(Account, 'You are signed in. The cookie contains the session.'),
        },
        detail: { operationId: 'signInWithPasskey', summary: 'Sign in with a passkey', tags },
      },
    )
    .post(
      '/api/session/verify/passkey/options',
      async ({ call }) => {
        const { account, session } = call.admitted
        const { id: rpId } = toRelyingParty(site)
        const allowCredentials = await call.pool.run(sql =>
          listCredentials(sql, account.id, { isUsable: true }),
        )
        if (allowCredentials.length === 0) throw new Fault('conflict', 'You have no passkey')
        const options = toOptions(rpId, createChallenge(secrets, 'verify', session.id))
        return succeed(call, 200, { ...options, allowCredentials })
      },
      {
        account: 'account.verifyByPasskey',
        response: { 200: SuccessOf(WebAuthnOptions, 'The options to confirm with a passkey.') },
        detail: {
          operationId: 'getPasskeyVerificationOptions',
          summary: 'Get the options to confirm that it is you with a passkey',
          tags,
        },
      },
    )
    .post(
      '/api/session/verify/passkey',
      async ({ call, body: { credential } }) => {
        const { account, session } = call.admitted
        const expected = { purpose: 'verify', binding: session.id, accountId: account.id } as const
        const proof = await prove(call, credential, expected)
        const details = { method: 'passkey' }
        const verified = await usePasskey(call, proof, async tx => ({
          cookie: await verifySession(tx, call, { isMultiFactor: true, details }),
          account: await getAccount(tx, { ...call.admitted, isVerified: true }),
        }))
        return succeed(call, 200, verified.account, { cookies: [verified.cookie] })
      },
      {
        account: 'account.verifyByPasskey',
        body: VerifyBody,
        response: { 200: SuccessOf(Account, 'The account is verified for 10 minutes.') },
        detail: {
          operationId: 'verifyPasskey',
          summary: 'Confirm that it is you with a passkey',
          description:
            'For 10 minutes, the session can do actions that require a verification. It gets a new cookie.',
          tags,
        },
      },
    )
}

function toOptions(rpId: string, challenge: string) {
  return { challenge, rpId, timeout: CHALLENGE_AGE_S * 1000, userVerification: 'required' }
}

/**
 * Uses up the challenge, records the use of the passkey, and does `work` in the same transaction.
 * Disables a passkey that was copied, commits that, and throws `wrong_credentials`.
 */
async function usePasskey<Result>(
  { pool, address, userAgent }: SessionCall,
  { passkey, challenge, use }: Proof,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  const actor: Actor = { kind: 'anonymous', address, userAgent }
  const done = await transact(pool, async tx => {
    await useChallenge(tx, challenge)
    await lockAccount(tx, passkey.accountId)
    const outcome = await recordUse(tx, actor, passkey.id, use)
    if (outcome === 'gone') throw unknownPasskey()
    return outcome === 'cloned' ? undefined : { result: await work(tx) }
  })
  if (!done) throw disabledPasskey()
  return done.result
}

function unknownPasskey(): Fault {
  return new Fault(
    'wrong_credentials',
    'This server does not know this passkey. It may have been removed. Sign in another way.',
  )
}

function disabledPasskey(): Fault {
  return new Fault(
    'wrong_credentials',
    'A copy of this passkey exists, because its counter went backwards. It is disabled, and its sessions have ended. Sign in another way and remove it.',
  )
}
