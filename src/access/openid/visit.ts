import { jwtVerify } from 'jose'
import * as openid from 'openid-client'
import type { ProviderSettings } from '../../base/config/openid.ts'
import type { Site } from '../../http/site.ts'
import { type Visit, VisitProblem } from './flow.ts'
import { ALGORITHMS } from './logout.ts'
import { toProfile, type Profile } from './profile.ts'
import {
  CLOCK_TOLERANCE_S,
  isProviderDown,
  type ProviderClient,
  type ProviderClients,
} from './provider-client.ts'

type VisitOptions = Pick<Visit, 'purpose' | 'next' | 'invite' | 'sessionId' | 'isInstalled'>

/** Begins a visit. Returns the URL at the provider, and what the browser must keep. */
export async function beginVisit(
  { configuration }: ProviderClient,
  { provider, site }: { provider: ProviderSettings; site: Site },
  options: VisitOptions,
): Promise<{ url: string; visit: Visit }> {
  const visit: Visit = {
    kind: 'visit',
    provider: provider.name,
    issuer: provider.issuer,
    state: openid.randomState(),
    nonce: openid.randomNonce(),
    verifier: openid.randomPKCECodeVerifier(),
    startedAtMs: Date.now(),
    ...options,
  }
  const url = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: toRedirectUrl(site, provider.name),
    scope: provider.scopes,
    state: visit.state,
    nonce: visit.nonce,
    code_challenge: await openid.calculatePKCECodeChallenge(visit.verifier),
    code_challenge_method: 'S256',
    // The provider must ask for a credential again, although the person is signed in there.
    ...(visit.purpose === 'verify' && { prompt: 'login', max_age: '0' }),
  })
  return { url: url.href, visit }
}

/**
 * Redeems the code in the URL of a callback. Returns the verified profile. Throws `VisitProblem`.
 */
export async function finishVisit(
  clients: ProviderClients,
  { provider, site }: { provider: ProviderSettings; site: Site },
  { visit, query }: { visit: Visit; query: string },
): Promise<Profile> {
  const client = await clients.get(provider).catch(() => {
    throw new VisitProblem('unavailable')
  })
  const { configuration, keys } = client
  try {
    // Checks state, `iss` of RFC 9207, and every claim of the ID token.
    const tokens = await openid.authorizationCodeGrant(
      configuration,
      new URL(`${toRedirectUrl(site, provider.name)}${query}`),
      {
        expectedState: visit.state,
        expectedNonce: visit.nonce,
        pkceCodeVerifier: visit.verifier,
        idTokenExpected: true,
      },
    )
    await jwtVerify(tokens.id_token ?? '', keys, {
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
    })
    const claims = tokens.claims()
    if (!claims) throw new VisitProblem('invalid')
    const isComplete = 'email' in claims && provider.groupsClaim in claims
    const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined
    const more =
      isComplete || !hasMore
        ? {}
        : await openid.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    return toProfile(claims, more, provider.groupsClaim)
  } catch (error) {
    throw toProblem(clients, provider, error)
  }
}

/** The callback of a provider, to be entered there as redirect URL. */
export function toRedirectUrl({ url }: Site, name: string): string {
  return `${url}/openid/${name}/callback`
}

/** The endpoint for logout tokens of a provider. */
export function toLogoutUrl({ url }: Site, name: string): string {
  return `${url}/openid/${name}/backchannel-logout`
}

function toProblem(
  clients: ProviderClients,
  provider: ProviderSettings,
  error: unknown,
): VisitProblem {
  if (error instanceof VisitProblem) return error
  const { code, error: response } = error as { code?: unknown; error?: unknown }
  if (response === 'access_denied' || response === 'login_required') {
    return new VisitProblem('cancelled')
  }
  if (isProviderDown(error)) {
    clients.fail(provider, error)
    return new VisitProblem('unavailable')
  }
  // The client secret is wrong, or the provider does not know the redirect URL.
  if (code === 'OAUTH_RESPONSE_BODY_ERROR' && response === 'invalid_client') {
    clients.fail(provider, error)
  } else clients.refuse(provider, error)
  return new VisitProblem(isClockError(code) ? 'clock' : 'invalid')
}

function isClockError(code: unknown): boolean {
  return code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' || code === 'ERR_JWT_EXPIRED'
}
