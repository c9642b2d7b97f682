import { Elysia } from 'elysia'
import { transact } from '../../database/pool.ts'
import type { Secrets } from '../../database/secrets/secrets.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Site } from '../../http/site.ts'
import type { SessionGuard } from '../guard/guard.ts'
import { DeletedId, toName } from '../guard/schema.ts'
import { renewSession } from '../guard/sessions.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { CHALLENGE_AGE_S, checkChallenge, createChallenge, useChallenge } from './challenges.ts'
import {
  addPasskey,
  getPasskey,
  listCredentials,
  listPasskeys,
  removePasskey,
  renamePasskey,
  toUserHandle,
} from './passkeys.ts'
import { PasskeyBody, PasskeyChange, PasskeyInfo, PasskeyList, WebAuthnOptions } from './schema.ts'
import { ALGORITHMS, readChallenge, toRelyingParty, verifyNewCredential } from './webauthn.ts'

const tags = ['Account']

export interface PasskeyParts {
  guard: SessionGuard
  site: Site
  secrets: Pick<Secrets, 'derive'>
  issuers: readonly string[]
}

/** Routes to register, rename and remove the passkeys of the signed-in account. */
export function passkeyRoutes({ guard, site, secrets, issuers }: PasskeyParts) {
  return new Elysia({ name: 'passkeys' })
    .use(guard)
    .get(
      '/api/passkeys',
      async ({ call }) =>
        succeed(call, 200, {
          items: await call.pool.run(sql => listPasskeys(sql, call.admitted.account.id)),
        }),
      {
        account: 'passkeys.read',
        response: { 200: SuccessOf(PasskeyList, 'Your passkeys, oldest first.') },
        detail: { operationId: 'listPasskeys', summary: 'List your passkeys', tags },
      },
    )
    .post(
      '/api/passkeys/options',
      async ({ call }) => {
        const { account, session } = call.admitted
        const rp = toRelyingParty(site)
        const excludeCredentials = await call.pool.run(sql =>
          listCredentials(sql, account.id, { isUsable: false }),
        )
        return succeed(call, 200, {
          challenge: createChallenge(secrets, 'register', session.id),
          rp: { id: rp.id, name: 'Tidings' },
          user: {
            id: toUserHandle(account.id),
            name: account.email,
            displayName: account.name,
          },
          pubKeyCredParams: ALGORITHMS.map(alg => ({ type: 'public-key', alg })),
          timeout: CHALLENGE_AGE_S * 1000,
          attestation: 'none',
          excludeCredentials,
          authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        })
      },
      {
        account: 'passkeys.create',
        response: { 200: SuccessOf(WebAuthnOptions, 'The options for a new passkey.') },
        detail: {
          operationId: 'getPasskeyCreationOptions',
          summary: 'Get the options for a new passkey',
          tags,
        },
      },
    )
    .post(
      '/api/passkeys',
      async ({ call, body: { name, credential } }) => {
        const challenge = readChallenge(credential)
        const { id: binding } = call.admitted.session
        checkChallenge(secrets, challenge, { purpose: 'register', binding })
        const registered = await verifyNewCredential(toRelyingParty(site), credential, challenge)
        const accountId = call.admitted.account.id
        const added = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted)
          await useChallenge(tx, challenge)
          const passkey = { accountId, name: toName(name), credential: registered }
          const id = await addPasskey(tx, call.actor, passkey)
          const cookie = await renewSession(tx, call, { isMultiFactor: true })
          return { passkey: await getPasskey(tx, { accountId, id }), cookie }
        })
        return succeed(call, 201, added.passkey, { cookies: [added.cookie] })
      },
      {
        account: 'passkeys.add',
        body: PasskeyBody,
        response: { 201: SuccessOf(PasskeyInfo, 'The passkey. It can sign you in from now on.') },
        detail: { operationId: 'addPasskey', summary: 'Add a passkey', tags },
      },
    )
    .patch(
      '/api/passkeys/:passkeyId',
      async ({ call, params: { passkeyId: id }, body }) => {
        const ref = { accountId: call.admitted.account.id, id }
        const renamed = await transact(call.pool, async tx => {
          await renamePasskey(tx, call.actor, { ...ref, name: toName(body.name) })
          return getPasskey(tx, ref)
        })
        return succeed(call, 200, renamed)
      },
      {
        account: 'passkeys.edit',
        body: PasskeyChange,
        response: { 200: SuccessOf(PasskeyInfo, 'The passkey with its new name.') },
        detail: { operationId: 'renamePasskey', summary: 'Rename a passkey', tags },
      },
    )
    .delete(
      '/api/passkeys/:passkeyId',
      async ({ call, params: { passkeyId: id } }) => {
        const { account, session } = call.admitted
        await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted)
          const passkey = { accountId: account.id, id, sessionId: session.id }
          await removePasskey(tx, call.actor, passkey, issuers)
        })
        return succeed(call, 200, { id })
      },
      {
        account: 'passkeys.remove',
        response: { 200: SuccessOf(DeletedId, 'The passkey is removed.') },
        detail: {
          operationId: 'removePasskey',
          summary: 'Remove a passkey',
          description: 'Ends the other sessions that it made. The last way to sign in stays.',
          tags,
        },
      },
    )
}
