import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { parseId, toId } from '../../base/ids.ts'
import { transact } from '../../database/pool.ts'
import { succeed } from '../../http/call.ts'
import { SuccessOf } from '../../http/envelope.ts'
import type { Site } from '../../http/site.ts'
import type { CallOn, SessionGuard } from '../guard/guard.ts'
import { DeletedId, toName } from '../guard/schema.ts'
import type { Cookies } from '../guard/secret.ts'
import { renewSession } from '../guard/sessions.ts'
import { lockOwnAccount } from '../sign-in/account.ts'
import { CHALLENGE_AGE_S, useChallenge, type Challenges } from './challenges.ts'
import {
  addPasskey,
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
  cookies: Cookies
  challenges: Challenges
  issuers: readonly string[]
}

/** Routes to register, rename and remove the passkeys of the signed-in account. */
export function passkeyRoutes({ guard, site, cookies, challenges, issuers }: PasskeyParts) {
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
          challenge: challenges.create('register', session.id),
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
        challenges.check(challenge, 'register', call.admitted.session.id)
        const registered = await verifyNewCredential(toRelyingParty(site), credential, challenge)
        const { id, cookie } = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted)
          await useChallenge(tx, challenge)
          const accountId = call.admitted.account.id
          return {
            id: await addPasskey(tx, call.actor, {
              accountId,
              name: toName(name),
              credential: registered,
            }),
            cookie: await renewSession(tx, call, { cookies, isMultiFactor: true }),
          }
        })
        return succeed(call, 201, await getPasskey(call, id), { cookies: [cookie] })
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
      async ({ call, params, body }) => {
        const id = toPasskeyUuid(params.passkeyId)
        const accountId = call.admitted.account.id
        const isRenamed = await transact(call.pool, tx =>
          renamePasskey(tx, call.actor, { accountId, id, name: toName(body.name) }),
        )
        if (!isRenamed) throw passkeyNotFound()
        return succeed(call, 200, await getPasskey(call, id))
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
      async ({ call, params }) => {
        const id = toPasskeyUuid(params.passkeyId)
        const { account, session } = call.admitted
        const isRemoved = await transact(call.pool, async tx => {
          await lockOwnAccount(tx, call.admitted)
          const passkey = { accountId: account.id, id, sessionId: session.id }
          return removePasskey(tx, call.actor, passkey, issuers)
        })
        if (!isRemoved) throw passkeyNotFound()
        return succeed(call, 200, { id: toId('pky', id) })
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

async function getPasskey({ pool, admitted }: CallOn<'account'>, id: string): Promise<PasskeyInfo> {
  const passkeys = await pool.run(sql => listPasskeys(sql, admitted.account.id))
  const found = passkeys.find(passkey => passkey.id === toId('pky', id))
  if (!found) throw passkeyNotFound()
  return found
}

function toPasskeyUuid(passkeyId: string): string {
  const id = parseId('pky', passkeyId)
  if (id === undefined) throw passkeyNotFound()
  return id
}

function passkeyNotFound(): Fault {
  return new Fault('not_found', 'None of your passkeys has this id')
}
