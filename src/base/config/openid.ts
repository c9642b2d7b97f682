import { isDisruptive } from '../display-text.ts'

/** An OpenID Connect provider, as an operator has set it up. */
export interface ProviderSettings {
  /** Lower-case letters, digits and hyphens. It is a part of the provider's URLs here. */
  name: string
  /** The text of its button on the sign-in page. */
  label: string
  issuer: string
  clientId: string
  clientSecret: string
  /** Separated by spaces. They contain `openid`. */
  scopes: string
  /** The claim that lists the groups of a user. */
  groupsClaim: string
  /** True if a verified e-mail address of this provider is enough to connect an account. */
  isTrusted: boolean
}

const DEFAULT_SCOPES = 'openid email profile'
const DEFAULT_GROUPS_CLAIM = 'groups'

const MAX_TEXT = 500
const MAX_PROVIDERS = 40
export const PROVIDER_PARTS = [
  'ISSUER',
  'CLIENT_ID',
  'CLIENT_SECRET',
  'LABEL',
  'SCOPES',
  'GROUPS_CLAIM',
  'TRUSTED',
]
/** Variables of providers, and their `_FILE` variants. */
export const PROVIDER_VARIABLE = new RegExp(
  `^OIDC_([A-Z0-9]+(?:_[A-Z0-9]+)*?)_(${PROVIDER_PARTS.join('|')})(_FILE)?$`,
)
const REQUIRED = ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET'] as const
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/
const MAX_NAME = 40
/** The proxy header, as rules and connections name it beside the providers. */
export const PROXY = {
  name: 'proxy',
  label: 'Proxy header',
  issuer: 'proxy',
  isTrusted: true,
} as const

/** Returns the issuers of the connections with which accounts can sign in. */
export function listIssuers(
  providers: readonly Pick<ProviderSettings, 'issuer'>[],
  hasProxyHeader: boolean,
): string[] {
  return [...providers, ...(hasProxyHeader ? [PROXY] : [])].map(({ issuer }) => issuer)
}

/** Returns the names of all variables of providers in `env`, without their `_FILE` variants. */
export function listProviderVariables(env: Readonly<Record<string, unknown>>): string[] {
  const found = Object.keys(env).filter(name => PROVIDER_VARIABLE.test(name))
  return [...new Set(found.map(name => name.replace(/_FILE$/, '')))].toSorted()
}

/**
 * Parses the variables `OIDC_<NAME>_ISSUER`, `_CLIENT_ID`, `_CLIENT_SECRET`, `_LABEL`, `_SCOPES`,
 * `_GROUPS_CLAIM` and `_TRUSTED`. Adds a sentence to `problems` for each one that is missing or
 * invalid. Returns them ordered by label.
 */
export function toProviders(
  values: ReadonlyMap<string, string>,
  problems: string[],
): ProviderSettings[] {
  const prefixes = new Map<string, string>()
  for (const variable of values.keys()) {
    const [, name] = PROVIDER_VARIABLE.exec(variable) ?? []
    if (name !== undefined) prefixes.set(`OIDC_${name}`, name.toLowerCase().replaceAll('_', '-'))
  }
  if (prefixes.size > MAX_PROVIDERS) {
    problems.push(`OIDC_* may name at most ${MAX_PROVIDERS} providers.`)
  }
  const providers = [...prefixes].map(([prefix, name]) => {
    const read = (part: string) => values.get(`${prefix}_${part}`)
    for (const part of REQUIRED) {
      if (read(part) === undefined) {
        const all = REQUIRED.map(one => `${prefix}_${one}`).join(', ')
        problems.push(`${prefix}_${part} is missing. Set ${all}.`)
      }
    }
    const issuer = read('ISSUER') ?? ''
    const issuerProblem = issuer === '' ? undefined : findIssuerProblem(issuer)
    if (issuerProblem) problems.push(`${prefix}_ISSUER is invalid. ${issuerProblem}`)
    if (!isProviderName(name)) {
      problems.push(
        `${prefix}_ISSUER names the provider ${name}. Choose a name of at most ${MAX_NAME} characters other than ${PROXY.name}.`,
      )
    }
    if (isDisruptive(read('LABEL') ?? '')) {
      problems.push(
        `${prefix}_LABEL must not contain control characters or characters that change the direction of text.`,
      )
    }
    const trusted = read('TRUSTED')?.toLowerCase() ?? 'false'
    if (trusted !== 'true' && trusted !== 'false') {
      problems.push(`${prefix}_TRUSTED must be true or false.`)
    }
    return {
      name,
      label: read('LABEL') ?? toDefaultLabel(name),
      issuer,
      clientId: read('CLIENT_ID') ?? '',
      clientSecret: read('CLIENT_SECRET') ?? '',
      scopes: toScopes(read('SCOPES')),
      groupsClaim: read('GROUPS_CLAIM') ?? DEFAULT_GROUPS_CLAIM,
      isTrusted: trusted === 'true',
    }
  })
  return providers.toSorted((one, other) => one.label.localeCompare(other.label))
}

/** Returns whether `name` can be the name of a provider. */
function isProviderName(name: string): boolean {
  return name.length <= MAX_NAME && NAME.test(name) && name !== PROXY.name
}

/** Returns the scopes to request, with `openid` among them. */
function toScopes(text: string = DEFAULT_SCOPES): string {
  return [...new Set(['openid', ...text.split(/[\s,]+/).filter(Boolean)])].join(' ')
}

/**
 * Returns why a URL cannot be the issuer of a provider, as a sentence. An issuer without TLS is
 * accepted only on this machine, because its tokens could be read and replaced on the way.
 */
function findIssuerProblem(text: string): string | undefined {
  if (text.length > MAX_TEXT || !URL.canParse(text)) {
    return 'It must be a URL like https://login.example.com.'
  }
  const url = new URL(text)
  if (url.username || url.password || url.search || url.hash) {
    return 'It must be a URL without user name, query and fragment.'
  }
  return isSecureOrLocal(url)
    ? undefined
    : 'It must begin with https://. Only a provider on this machine may use http://.'
}

/** Returns whether a URL is https, or http to a loopback address. */
export function isSecureOrLocal({ protocol, hostname }: URL): boolean {
  if (protocol === 'https:') return true
  return protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

function toDefaultLabel(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll('-', ' ')
}
