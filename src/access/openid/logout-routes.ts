import { Elysia } from 'elysia'
import { Fault } from '../../base/errors.ts'
import { transact } from '../../database/pool.ts'
import { readText } from '../../http/body.ts'
import { respond, withCall } from '../../http/call.ts'
import { deferBody, readPath } from '../../http/route.ts'
import { LOGOUT_TOKEN_S, endProviderSessions, verifyLogoutToken } from './logout.ts'
import { getProvider, type OpenidParts } from './provider-routes.ts'
import { isProviderDown } from './provider-client.ts'
import { markUsed } from './flow.ts'

const PATH = '/openid/:provider/backchannel-logout'

/**
 * The route that providers call when a session there has ended (OpenID Connect Back-Channel Logout
 * 1.0). The signature of the token is the authentication.
 */
export function logoutRoutes(parts: Omit<OpenidParts, 'guard'>) {
  const { sessions, providers, clients, hints, inputLimits, failedAuthentications } = parts

  async function logOut(request: Request, name: string): Promise<object> {
    const address = parts.toAddress(request)
    const token = new URLSearchParams(
      await readText(request, { ...inputLimits, caller: undefined }),
    ).get('logout_token')
    const provider = getProvider(providers, name)
    const client = await clients.get(provider)
    let logout: Awaited<ReturnType<typeof verifyLogoutToken>>
    try {
      logout = await verifyLogoutToken(client, provider.clientId, token ?? '')
    } catch (error) {
      if (isProviderDown(error)) throw clients.fail(provider, error)
      clients.refuse(provider, error)
      await failedAuthentications.countFailure(address)
      return { error: 'invalid_request', error_description: 'The logout token is not valid' }
    }
    const isFresh = await transact(sessions.of(provider.issuer), async tx => {
      if (!(await markUsed(tx, `${logout.issuer} ${logout.jti}`, LOGOUT_TOKEN_S))) return false
      await endProviderSessions(tx, name, logout)
      return true
    })
    if (!isFresh)
      return { error: 'invalid_request', error_description: 'The token was used before' }
    hints.send([{ kind: 'access' }])
    return {}
  }

  return new Elysia({ name: 'openid.logout' }).use(withCall).post(
    PATH,
    async ({ exchange, request }) => {
      const params = readPath({ request, call: exchange, route: {} }, PATH)
      const { provider } = params as { provider?: string }
      if (provider === undefined) throw new Fault('not_found', 'No provider has this name')
      const body = await logOut(request, provider)
      return respond(exchange, { status: 'error' in body ? 400 : 200, body: JSON.stringify(body) })
    },
    { parse: deferBody, detail: { hide: true } },
  )
}
