import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from 'jose'
// @ts-expect-error The package has no types.
import Provider from 'oidc-provider'
import { listen } from '../loopback.ts'
import { findHeaderProblem } from '../request-head.ts'

export const CLIENT_ID = 'tidings'
export const CLIENT_SECRET = 'a secret of forty characters for the test'

/** The claims of a person at the provider, beside `sub`. */
export type Claims = Record<string, unknown>

/** A real OpenID Connect provider (oidc-provider) on a port of loopback. */
export interface OpenidProvider extends AsyncDisposable {
  issuer: string
  /** The claims of each person, by the name with which they sign in. */
  people: Map<string, Claims>
  /** Lets clients of this server's URL sign in. Call it before the first visit. */
  serve(serverUrl: string, names: readonly string[]): void
  /** Changes the claims of the next ID token. It is signed with the provider's key. */
  forge: ((claims: JWTPayload) => JWTPayload) | undefined
  /** Signs ID tokens with another key, which is published only if `isPublished`. */
  rotateKey(isPublished: boolean): Promise<void>
  /** Signs a token with the key of the provider. */
  sign(claims: JWTPayload, header?: object): Promise<string>
  /** Responds with this status to everything, if it is set. */
  failure: number | undefined
  /** How often a code was to be redeemed. */
  readonly redemptions: number
  /** Makes the provider send its own logout tokens for a person and session. */
  endSession(subject: string, sid: string): Promise<void>
}

interface Key {
  kid: string
  privateKey: CryptoKey
  privateJwk: object
  jwk: object
}

export async function startOpenidProvider(): Promise<OpenidProvider> {
  const keys = [await newKey('first')]
  let published = [...keys]
  let provider: any
  let redemptions = 0
  const people = new Map<string, Claims>()

  const server = createServer((request, response) => {
    void handle(request, response)
  })
  const port = await listen(server)
  const issuer = `http://localhost:${port}`

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/token') redemptions++
    const problem = findHeaderProblem(request.rawHeaders)
    if (problem !== undefined) return void response.writeHead(400).end(problem)
    if (self.failure !== undefined || !provider) {
      response.writeHead(self.failure ?? 503).end('away')
      return
    }
    if (request.url === '/jwks') {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ keys: published.map(({ jwk }) => jwk) }))
      return
    }
    if (request.url === '/token') changeToken(response)
    await provider.callback()(request, response)
  }

  /** Replaces the ID token of a token response. */
  function changeToken(response: ServerResponse): void {
    const end = response.end.bind(response)
    response.end = ((chunk?: string | Buffer) => {
      void resign(String(chunk ?? '')).then(text => {
        response.setHeader('content-length', Buffer.byteLength(text))
        end(text)
      })
      return response
    }) as typeof response.end
  }

  async function resign(text: string): Promise<string> {
    const body = JSON.parse(text)
    if (typeof body.id_token !== 'string') return text
    const claims = JSON.parse(Buffer.from(body.id_token.split('.')[1], 'base64url').toString())
    return JSON.stringify({ ...body, id_token: await self.sign(self.forge?.(claims) ?? claims) })
  }

  const self: OpenidProvider = {
    issuer,
    people,
    forge: undefined,
    failure: undefined,
    get redemptions() {
      return redemptions
    },
    serve(serverUrl, names) {
      provider = new Provider(issuer, {
        clients: [
          {
            client_id: CLIENT_ID,
            client_secret: CLIENT_SECRET,
            redirect_uris: names.map(name => `${serverUrl}/openid/${name}/callback`),
            backchannel_logout_uri: `${serverUrl}/openid/${names[0]}/backchannel-logout`,
            backchannel_logout_session_required: true,
          },
        ],
        jwks: { keys: [{ ...keys[0]!.jwk, ...keys[0]!.privateJwk, use: 'sig' }] },
        cookies: { keys: ['test'] },
        claims: {
          openid: ['sub', 'sid', 'auth_time'],
          email: ['email', 'email_verified'],
          profile: ['name', 'amr'],
          groups: ['groups'],
        },
        scopes: ['openid', 'email', 'profile', 'groups'],
        features: { backchannelLogout: { enabled: true } },
        // Both programs run on this machine.
        ...(names.length > 0 && { pkce: { required: () => true } }),
        findAccount: (_: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ sub: id, ...people.get(id) }),
        }),
        // Nobody is asked for consent.
        async loadExistingGrant(ctx: any) {
          const { client, session } = ctx.oidc
          const grant = new ctx.oidc.provider.Grant({
            clientId: client.clientId,
            accountId: session.accountId,
          })
          grant.addOIDCScope('openid email profile groups')
          await grant.save()
          return grant
        },
      } as never)
      provider.on('server_error', (_: unknown, error: unknown) => console.error(error))
    },
    async rotateKey(isPublished) {
      const fresh = await newKey(`key ${keys.length}`)
      keys.unshift(fresh)
      if (isPublished) published = [fresh, ...published]
    },
    sign(claims, header = {}) {
      const [{ kid, privateKey }] = keys as [Key]
      return new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid, ...header })
        .sign(privateKey)
    },
    async endSession(subject, sid) {
      const client: any = await provider?.Client.find(CLIENT_ID)
      await client.backchannelLogout(subject, sid)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
  return self
}

async function newKey(kid: string): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' }
  return { kid, privateKey, privateJwk: await exportJWK(privateKey), jwk }
}

/**
 * Signs in at a provider like a browser: follows redirects from `url` and fills in the login form,
 * until the provider sends the browser to another origin. Returns that URL.
 */
export async function signInAt(
  url: string,
  login: string,
  jar = new Map<string, string>(),
): Promise<string> {
  const { origin } = new URL(url)
  let next = url
  for (let step = 0; step < 10; step++) {
    if (new URL(next).origin !== origin) return next
    const form = next.includes('/interaction/')
      ? { method: 'POST', body: new URLSearchParams({ prompt: 'login', login, password: 'x' }) }
      : {}
    const response = await fetch(next, {
      ...form,
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) {
      throw new Error(`${response.status} from ${next}: ${(await response.text()).slice(0, 500)}`)
    }
    next = new URL(location, next).href
  }
  throw new Error('The provider sends the browser in a circle')
}
