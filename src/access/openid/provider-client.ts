import { createRemoteJWKSet, customFetch as keyFetch } from 'jose'
import * as openid from 'openid-client'
import { isSecureOrLocal, type ProviderSettings } from '../../base/config/openid.ts'
import type { Egress } from '../../http/egress/egress.ts'
import { Fault } from '../../base/errors.ts'
import { setNewest } from '../../base/functions.ts'
import { limitLines, logger } from '../../base/log.ts'
import { hashSecret } from '../guard/secret.ts'

const log = logger('openid')

// Visitors need no account, and can repeat both.
const warnOfProblem = limitLines((problem, count) =>
  log.warning('{problem}', { problem, ...(count > 1 && { count }) }),
)

/** How far the clocks of a provider and of this server may differ, in seconds. */
export const CLOCK_TOLERANCE_S = 300
/** The deadline of one request to a provider. */
const TIMEOUT_MS = 5_000
const MAX_BODY_BYTES = 256 * 1024
const METADATA_MS = 600_000
const KEYS_MS = 600_000
/** How long a failed discovery is remembered, so that visitors do not repeat it. */
const FAILED_MS = 5_000
/** How long a token with an unknown key waits until the keys are fetched again. */
const KEY_COOLDOWN_MS = 5_000
const MAX_CLIENTS = 50

/** A discovered provider: its endpoints, and the keys that sign its tokens. */
export interface ProviderClient {
  configuration: openid.Configuration
  keys: ReturnType<typeof createRemoteJWKSet>
}

export interface ProviderClients {
  /**
   * Returns the client of a provider. Metadata is kept for 10 minutes. Throws `unavailable` if the
   * provider fails.
   */
  get(provider: ProviderSettings): Promise<ProviderClient>
  /** Discovers a provider anew. Returns what is wrong, as a sentence; undefined if all is well. */
  check(provider: ProviderSettings): Promise<string | undefined>
  /** Remembers a failure of a provider after its discovery, and returns the error for it. */
  fail(provider: ProviderSettings, error: unknown): Fault
  /** Logs that a response of a provider was refused, at most twice a second for one reason. */
  refuse(provider: ProviderSettings, error: unknown): void
  /** Returns whether the last request to a provider has failed. */
  isFailing(provider: ProviderSettings): boolean
}

export interface ProviderClientsOptions {
  egress: Egress
  /** Replaces the 5 s until keys are fetched again. */
  keyCooldownMs?: number | undefined
}

interface Known {
  client: Promise<ProviderClient>
  untilMs: number
  /** The reason of the last failure. */
  problem: string | undefined
}

/** A request that the guarded HTTP client has refused, or that got no response. */
class EgressProblem extends Error {}

/** Discovers providers when they are first used, so that a start depends on none of them. */
export function createProviderClients({
  egress,
  keyCooldownMs = KEY_COOLDOWN_MS,
}: ProviderClientsOptions): ProviderClients {
  const known = new Map<string, Known>()

  async function send(url: string, options: SentOptions): Promise<Response> {
    const { 'user-agent': _, ...headers } = Object.fromEntries(new Headers(options.headers))
    const { body } = options
    const result = await egress.send({
      url,
      method: options.method === 'POST' ? 'POST' : 'GET',
      headers,
      body:
        body instanceof URLSearchParams ? body.toString() : typeof body === 'string' ? body : '',
      timeoutMs: TIMEOUT_MS,
      isAwaited: true,
      maxBodyBytes: MAX_BODY_BYTES,
    })
    if ('error' in result) throw new EgressProblem(result.message)
    if (result.body.length >= MAX_BODY_BYTES) throw new EgressProblem('The response is too long')
    const hasBody = result.status !== 204 && result.status !== 304
    return new Response(hasBody ? new Uint8Array(result.body) : null, {
      status: result.status,
      headers: result.headers,
    })
  }

  async function discover(provider: ProviderSettings): Promise<ProviderClient> {
    const { issuer, clientId, clientSecret } = provider
    const isLocal = issuer.startsWith('http:')
    const configuration = await openid.discovery(
      new URL(issuer),
      clientId,
      { [openid.clockTolerance]: CLOCK_TOLERANCE_S },
      // Servers that do not say which form they accept, accept the basic one.
      (server, client, body, headers) =>
        (server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') === false
          ? openid.ClientSecretPost(clientSecret)
          : openid.ClientSecretBasic(clientSecret))(server, client, body, headers),
      {
        [openid.customFetch]: send,
        timeout: TIMEOUT_MS / 1000,
        // Operators cannot name another http issuer than one on this machine.
        ...(isLocal && { execute: [openid.allowInsecureRequests] }),
      },
    )
    const server = configuration.serverMetadata()
    checkEndpoints(server)
    return {
      configuration,
      keys: createRemoteJWKSet(new URL(server.jwks_uri ?? ''), {
        [keyFetch]: (url, options) => send(url, options as SentOptions),
        timeoutDuration: TIMEOUT_MS,
        cooldownDuration: keyCooldownMs,
        cacheMaxAge: KEYS_MS,
      }),
    }
  }

  function remember(provider: ProviderSettings): Known {
    const client = discover(provider)
    const fresh: Known = { client, untilMs: performance.now() + METADATA_MS, problem: undefined }
    setNewest(known, toKey(provider), fresh, MAX_CLIENTS)
    client.catch((error: unknown) => note(provider, fresh, error))
    return fresh
  }

  function note({ name }: ProviderSettings, one: Known, error: unknown): void {
    one.problem = describe(error)
    one.untilMs = Math.min(one.untilMs, performance.now() + FAILED_MS)
    warnOfProblem(`The provider ${name} failed: ${one.problem}`)
  }

  return {
    async get(provider) {
      const found = known.get(toKey(provider))
      const one = found && found.untilMs > performance.now() ? found : remember(provider)
      try {
        return await one.client
      } catch {
        throw unavailable(provider)
      }
    },
    async check(provider) {
      const one = remember(provider)
      try {
        const { keys } = await one.client
        await keys.reload()
        return undefined
      } catch (error) {
        note(provider, one, error)
        return describe(error)
      }
    },
    fail(provider, error) {
      const one = known.get(toKey(provider))
      if (one) note(provider, one, error)
      return unavailable(provider)
    },
    refuse({ name }, error) {
      warnOfProblem(`A response of the provider ${name} was refused: ${describe(error)}`)
    },
    isFailing: provider => known.get(toKey(provider))?.problem !== undefined,
  }
}

interface SentOptions {
  method: string
  headers: Record<string, string> | Headers
  body?: unknown
}

/** Returns whether an error means that a provider did not respond as a provider. */
export function isProviderDown(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return (
    findEgressProblem(error) !== undefined ||
    code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' ||
    code === 'OAUTH_RESPONSE_IS_NOT_JSON' ||
    code === 'OAUTH_PARSE_ERROR' ||
    code === 'OAUTH_TIMEOUT' ||
    code === 'ERR_JWKS_TIMEOUT'
  )
}

function unavailable({ label }: ProviderSettings): Fault {
  return new Fault(
    'unavailable',
    `${label} does not respond as it should. Sign in another way, or try again in a minute.`,
    { 'Retry-After': '60' },
  )
}

/** Throws unless every endpoint that is used is reached with TLS, or on this machine. */
function checkEndpoints(server: Readonly<openid.ServerMetadata>): void {
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
    const url = server[name]
    if (url === undefined || !URL.canParse(url) || !isSecureOrLocal(new URL(url))) {
      throw new EgressProblem(`The metadata of the provider has no usable ${name}`)
    }
  }
}

/** Returns what went wrong at a provider, for its operator. It contains no secret. */
function describe(error: unknown): string {
  const problem = findEgressProblem(error)
  if (problem) return `${problem.message}.`
  const { code, message = '' } = error as { code?: unknown; message?: string }
  switch (code) {
    case 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED':
    case 'OAUTH_JWT_CLAIM_COMPARISON_FAILED': {
      const name = findCompared(error)
      return name === 'issuer' || name === 'iss'
        ? 'The provider names another issuer than the configured one. Copy its issuer exactly.'
        : `The response of the provider has an unexpected ${name ?? 'claim'}.`
    }
    case 'OAUTH_RESPONSE_IS_NOT_CONFORM':
      return 'The provider has no OpenID Connect metadata at this issuer. Check the URL.'
    case 'OAUTH_RESPONSE_IS_NOT_JSON':
    case 'OAUTH_PARSE_ERROR':
      return 'The response of the provider is not JSON. Check the URL of the issuer.'
    case 'OAUTH_RESPONSE_BODY_ERROR':
      return 'The provider refused the client. Check the client ID, the client secret and the redirect URL.'
    default:
      return `${message.replace(/\.$/, '')}.`
  }
}

/** Returns the name of the attribute or the claim that had an unexpected value. */
function findCompared(error: unknown): string | undefined {
  const { attribute, claim, cause } = (error ?? {}) as Record<string, unknown>
  const name = attribute ?? claim
  return typeof name === 'string' ? name : cause ? findCompared(cause) : undefined
}

function findEgressProblem(error: unknown): EgressProblem | undefined {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof EgressProblem) return one
  }
  return undefined
}

/** Identifies the settings with which a provider is discovered. A changed provider is another. */
function toKey({ name, issuer, clientId, clientSecret }: ProviderSettings): string {
  return hashSecret(JSON.stringify([name, issuer, clientId, clientSecret]))
}
