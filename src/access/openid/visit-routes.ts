import { Elysia } from 'elysia'
import { lockOwnAccount } from '../sign-in/account.ts'
import { hasOwner } from '../sign-in/owners.ts'
import { arePasswordsOff } from '../sign-in/credentials.ts'
import { authorize } from '../guard/authorize.ts'
import { PROXY } from '../../base/config/openid.ts'
import { transact } from '../../database/pool.ts'
import { Fault } from '../../base/errors.ts'
import { succeed } from '../../http/call.ts'
import { ApiFailure, SuccessOf } from '../../http/envelope.ts'
import { keepFlow, readFlow, VisitProblem } from './flow.ts'
import { connect } from './connections.ts'
import { getProvider, type OpenidParts } from './provider-routes.ts'
import { Connected, SignInOptions, StartBody, Started } from './schema.ts'
import { beginVisit } from './visit.ts'

const tags = ['Account']
const MAX_LENGTH = 2_000
/** Paths of the server itself, and of the sign-in page. */
const NO_PAGE = /^\/(v1|api|openid|assets|sign-in)([/?#]|$)/
const PLAIN = /^\/(?![/\\])[!-[\]-~]*$/

/** Routes of the sign-in page: its options, and the start of a visit to a provider. */
export function visitRoutes(parts: OpenidParts) {
  const { guard, site, providers, clients, findProxyEmail } = parts
  return new Elysia({ name: 'openid.visits' })
    .use(guard)
    .get(
      '/api/sign-in',
      async ({ call, request }) => {
        const [isOff, isSetUp] = await call.pool.run(async sql => [
          await arePasswordsOff(sql),
          await hasOwner(sql),
        ])
        const flow = readFlow(parts.secrets, call.cookies)
        const waiting = flow?.kind === 'confirmation' ? flow : undefined
        const options: SignInOptions = {
          hasOwner: isSetUp,
          isSignedIn: call.admitted !== undefined,
          hasPasswords: !isOff,
          providers: providers.map(provider => ({
            name: provider.name,
            label: provider.label,
            isFailing: clients.isFailing(provider),
          })),
          proxyEmail: findProxyEmail(request) ?? null,
          confirmation: waiting
            ? {
                label:
                  [...providers, PROXY].find(({ name }) => name === waiting.provider)?.label ?? '',
                email: waiting.email,
              }
            : null,
        }
        return succeed(call, 200, options)
      },
      {
        anyone: 'signIn.read',
        response: { 200: SuccessOf(SignInOptions, 'The ways to sign in.') },
        detail: { operationId: 'getSignInOptions', summary: 'List the ways to sign in', tags },
      },
    )
    .post(
      '/api/openid/:provider/visits',
      async ({ call, body, params: { provider: name } }) => {
        const { purpose, next, invite = null, isInstalled = false } = body
        const { admitted } = call
        if (purpose !== 'signIn' && !admitted) throw new Fault('signed_out', 'Sign in first')
        if (purpose === 'connect') {
          authorize(admitted, 'connections.create', undefined)
        }
        const provider = getProvider(providers, name)
        const client = await clients.get(provider)
        const { url, visit } = await beginVisit(
          client,
          { provider, site },
          {
            purpose,
            next: toSafePath(next),
            invite: purpose === 'signIn' ? invite : null,
            sessionId: purpose === 'signIn' ? null : (admitted?.session.id ?? null),
            isInstalled,
          },
        )
        return succeed(
          call,
          201,
          { url },
          { cookies: [keepFlow(parts.secrets, call.cookies, visit)] },
        )
      },
      {
        anyone: 'openid.visit',
        body: StartBody,
        response: { 201: SuccessOf(Started, 'The URL to open. A cookie contains the state.') },
        detail: {
          operationId: 'startVisit',
          summary: 'Start a visit to an OpenID Connect provider',
          description:
            'The provider sends the browser back to `/openid/{provider}/callback`, which signs in, connects the signed-in account, or verifies it.',
          tags,
        },
      },
    )
    .post(
      '/api/openid/confirmation',
      async ({ call }) => {
        const { admitted, actor } = call
        const flow = readFlow(parts.secrets, call.cookies)
        if (flow?.kind !== 'confirmation') {
          throw new Fault('not_found', 'No connection waits in this browser. Sign in again.')
        }
        const provider =
          parts.hasProxyHeader && flow.provider === PROXY.name
            ? PROXY
            : getProvider(providers, flow.provider)
        if (provider.issuer !== flow.issuer) {
          throw new Fault('conflict', 'The provider has changed. Sign in there again.')
        }
        try {
          await transact(call.pool, async tx => {
            const { email } = await lockOwnAccount(tx, admitted)
            if (flow.email !== email) {
              throw new Fault('conflict', `Sign in as ${flow.email} to connect it.`)
            }
            await connect(tx, actor, admitted.account.id, flow)
          })
        } catch (error) {
          if (!(error instanceof VisitProblem)) throw error
          throw new Fault(
            'conflict',
            error.code === 'otherAccount'
              ? `Another account is connected to this identity at ${provider.label}`
              : `Your account is connected to another identity at ${provider.label}. Remove that connection first.`,
          )
        }
        return succeed(
          call,
          200,
          { label: provider.label },
          { cookies: [call.cookies.clear('openid')] },
        )
      },
      {
        account: 'connections.create',
        response: { 200: SuccessOf(Connected, 'The account is connected.'), 404: ApiFailure },
        detail: {
          operationId: 'confirmConnection',
          summary: 'Connect your account with the identity that waits in this browser',
          tags,
        },
      },
    )
}

/** Returns `path` if it is a path of a page of this server, else `/`. */
function toSafePath(path: string | undefined): string {
  const isSafe =
    path !== undefined && path.length <= MAX_LENGTH && PLAIN.test(path) && !NO_PAGE.test(path)
  return isSafe ? path : '/'
}
