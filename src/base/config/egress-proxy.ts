import type { ReadSetting } from './names.ts'
import { toSwitch } from './values.ts'

/** An HTTP proxy that outgoing requests use. */
export interface ProxySettings {
  /** `http:`, with a port unless it is 80. A user name and a password may be in it. */
  url: string
  /** Hosts that are requested without the proxy, in the form of NO_PROXY. */
  noProxy: string
  /** True if the proxy resolves names. It must then refuse private addresses itself. */
  resolvesNames: boolean
}

/** Allows the usual variables of the environment. */
const ENVIRONMENT = 'environment'
const FORM = 'a URL like http://proxy.example.com:3128'

/**
 * Reads the proxy of outgoing requests. The variables HTTPS_PROXY and NO_PROXY count only if
 * EGRESS_PROXY allows them, because other programs set them, too. Adds a sentence to `problems` for
 * an invalid HTTPS_PROXY.
 */
export function toEgressProxy(
  env: Readonly<Record<string, string | undefined>>,
  read: ReadSetting,
  problems: string[],
): ProxySettings | undefined {
  const resolvesNames = read('EGRESS_PROXY_RESOLVES', 'on or off', toSwitch) ?? false
  const own = read('EGRESS_PROXY', `${FORM}, or ${ENVIRONMENT}`, text =>
    text === ENVIRONMENT ? text : toProxyUrl(text),
  )
  if (own === undefined) return undefined
  if (own !== ENVIRONMENT) return { url: own, noProxy: '', resolvesNames }
  const text = env['HTTPS_PROXY'] || env['https_proxy']
  if (!text) return undefined
  const url = toProxyUrl(text)
  if (url === undefined) {
    problems.push(`HTTPS_PROXY must be ${FORM}. EGRESS_PROXY=${ENVIRONMENT} uses it.`)
    return undefined
  }
  return { url, noProxy: env['NO_PROXY'] || env['no_proxy'] || '', resolvesNames }
}

/** Returns the URL of a proxy; undefined unless it is an http URL without a path. */
function toProxyUrl(text: string): string | undefined {
  const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  const isBare = url?.protocol === 'http:' && url.pathname === '/' && !url.search && !url.hash
  return isBare && url.hostname !== '' ? url.href : undefined
}
