import type {
  Connections,
  Provider,
  ProviderCheck,
  SignInOptions,
  SignInRule,
  SignInRules,
} from '../../../access/openid/schema.ts'
import { SIGN_IN_API_PATH } from '../api-paths.ts'
import { request, type Result } from '../request.ts'
import { isInstalled } from '../session.ts'

export type { Connections, Provider, SignInOptions, SignInRule, SignInRules }

export function readSignInOptions(): Promise<Result<SignInOptions>> {
  return request('GET', SIGN_IN_API_PATH)
}

export interface VisitOptions {
  purpose: 'signIn' | 'connect' | 'verify'
  /** The path to open afterwards. */
  next: string
  /** The secret of the invite to accept. */
  invite?: string | undefined
}

/** Opens the page of a provider. Returns only if the visit cannot start. */
export async function startVisit(provider: string, visit: VisitOptions): Promise<Result<object>> {
  const { purpose, next, invite } = visit
  const started = await request<{ url: string }>('POST', `/api/openid/${provider}/visits`, {
    purpose,
    next,
    ...(invite !== undefined && { invite }),
    isInstalled: isInstalled(),
  })
  if (started.ok) location.assign(started.data.url)
  return started
}

export function signInWithProxy(invite?: string): Promise<Result<object>> {
  return request('POST', '/api/session/proxy', {
    ...(invite !== undefined && { invite }),
    isInstalled: isInstalled(),
  })
}

export function confirmConnection(): Promise<Result<{ label: string }>> {
  return request('POST', '/api/openid/confirmation')
}

export function readConnections(): Promise<Result<Connections>> {
  return request('GET', '/api/me/connections')
}

export function removeConnection(id: string): Promise<Result<unknown>> {
  return request('DELETE', `/api/me/connections/${encodeURIComponent(id)}`)
}

export function readRules(organization: string): Promise<Result<SignInRules>> {
  return request('GET', toRulesPath(organization))
}

export function replaceRules(
  organization: string,
  rules: readonly SignInRule[],
): Promise<Result<SignInRules>> {
  return request('PUT', toRulesPath(organization), { rules })
}

export function readProviders(): Promise<Result<{ items: Provider[] }>> {
  return request('GET', '/api/server/providers')
}

export function checkProvider(name: string): Promise<Result<ProviderCheck>> {
  return request('POST', `/api/server/providers/${name}/check`)
}

function toRulesPath(organization: string): `/api/${string}` {
  return `/api/organizations/${encodeURIComponent(organization)}/sign-in-rules`
}
