import type {
  Connections,
  Provider,
  SignInOptions,
  SignInRules,
} from '../../../src/access/openid/schema.ts'
import type { FakeApi } from './api.ts'

const AT = '2026-11-01T10:00:00.000Z'
const NAMED = [
  { name: 'company', label: 'Analytical Engines' },
  { name: 'keycloak', label: `Keycloak ${'of a long name '.repeat(3)}` },
]

const OPTIONS: SignInOptions = {
  hasOwner: true,
  isSignedIn: false,
  hasPasswords: true,
  providers: NAMED.map((one, index) => ({ ...one, isFailing: index === 1 })),
  proxyEmail: null,
  confirmation: null,
}

const toProvider = (name: string, label: string, more: Partial<Provider>): Provider => ({
  name,
  label,
  issuer: `https://login.example.com/realms/${name}`,
  clientId: 'tidings',
  scopes: 'openid email profile',
  groupsClaim: 'groups',
  isTrusted: false,
  isFailing: false,
  redirectUrl: `https://tidings.example.com/openid/${name}/callback`,
  logoutUrl: `https://tidings.example.com/openid/${name}/backchannel-logout`,
  ...more,
})

const PROVIDERS = [
  toProvider('company', 'Analytical Engines', { isTrusted: true }),
  toProvider('keycloak', 'Keycloak', { isFailing: true }),
]

const RULES: SignInRules = {
  rules: [
    { provider: 'company', kind: 'group', value: 'engineering', role: 'member' },
    { provider: 'keycloak', kind: 'domain', value: 'example.com', role: 'viewer' },
  ],
  providers: NAMED,
}

const CONNECTIONS: Connections = {
  items: [
    {
      id: 'con_1',
      provider: 'company',
      label: 'Analytical Engines',
      issuer: 'https://login.example.com/realms/company',
      createdAt: AT,
      lastUsedAt: AT,
    },
  ],
  providers: NAMED,
}

/** Offers providers on the sign-in page, with changed `options`. */
export function offerProviders(api: FakeApi, options: Partial<SignInOptions> = {}): void {
  api.on('GET /api/sign-in', () => ({ data: { ...OPTIONS, ...options } }))
}

/** Fills the account, the organization and the server with providers. */
export function fillProviders(api: FakeApi): void {
  api.on('GET /api/me/connections', () => ({ data: CONNECTIONS }))
  api.on('GET /api/server/providers', () => ({ data: { items: PROVIDERS } }))
  api.on('POST /api/server/providers/keycloak/check', () => ({
    data: { problem: 'No connection could be made to this address.' },
  }))
  api.on('GET /api/organizations/org_1/sign-in-rules', () => ({ data: RULES }))
}
