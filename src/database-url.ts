/** A host of a database URL. */
export interface Host {
  host: string
  port: number
}

/** A database URL in parts that postgres.js understands. */
export interface DatabaseAddress {
  /** The URL with the first host, and without the parameters below. */
  address: string
  /** All hosts in order. One of them is the primary. */
  hosts: Host[]
  /** The Unix socket of libpq's `?host=/folder`, which postgres.js does not know. */
  path?: string
  /**
   * Options of postgres.js for an IPv6 address, which it would split at its colons. Its types lack
   * lists of hosts.
   */
  literal?: object
  /** `synchronous_commit`, which postgres.js would prefer to the settings of a pool. */
  commit: string | null
  /** True for `pgbouncer=true`: a pooler gives each transaction another session. */
  isPooled: boolean
}

const POOLED = 'pgbouncer'
const BINDING = 'channel_binding'
const ROOTS = 'sslrootcert'
const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s
/** Values of `target_session_attrs` that a server can work with. It always uses the primary. */
const TARGETS = new Set([null, 'any', 'read-write', 'primary'])

/**
 * Parses the URL of a database. As with libpq, it can name several hosts: `a:5432,b:5433`. Throws a
 * TypeError if it is not a URL.
 */
export function parseUrl(url: string): DatabaseAddress {
  const [first, ...others] = splitHosts(url).map(one => new URL(one))
  if (!first) throw new TypeError('The URL has no host')
  const { searchParams } = first
  const commit = searchParams.get('synchronous_commit')
  const isPooled = searchParams.get(POOLED) === 'true'
  if (searchParams.get(ROOTS) === 'system') searchParams.set('sslmode', 'verify-full')
  // postgres.js would not connect to a server without TLS.
  if (searchParams.get('sslmode') === 'allow') searchParams.set('sslmode', 'prefer')
  // Postgres would reject parameters of libpq as unknown settings.
  for (const name of ['synchronous_commit', 'target_session_attrs', POOLED, BINDING, ROOTS])
    searchParams.delete(name)
  const folder = searchParams.get('host')
  const hosts = [first, ...others].map(toHost)
  if (!folder?.startsWith('/')) {
    const { host, port } = toHost(first)
    const literal = host.includes(':') && { literal: { host: [host], port: [port] } }
    return { address: first.href, hosts, ...literal, commit, isPooled }
  }
  searchParams.delete('host')
  const path = `${folder}/.s.PGSQL.${hosts[0]?.port}`
  return { address: first.href, hosts, path, commit, isPooled }
}

/** Returns whether the text is the URL of a Postgres with a primary. */
export function isDatabaseUrl(text: string): boolean {
  return splitHosts(text).every(one => {
    if (!URL.canParse(one)) return false
    const { protocol, searchParams } = new URL(one)
    return (
      /^postgres(ql)?:$/.test(protocol) && TARGETS.has(searchParams.get('target_session_attrs'))
    )
  })
}

/** Returns why the encryption that a URL asks for is not possible, and what is. */
export function findEncryptionProblem(url: string): string | undefined {
  const { searchParams } = new URL(splitHosts(url)[0] ?? url)
  if (searchParams.get(BINDING) === 'require')
    return 'has channel_binding=require, which is not supported. Use sslmode=verify-full in its place: it checks the certificate of the server.'
  if (![null, 'system'].includes(searchParams.get(ROOTS)))
    return 'has sslrootcert, which is not supported. Name the file in NODE_EXTRA_CA_CERTS, and use sslmode=verify-full.'
  return undefined
}

/** Returns the hosts of a URL for messages, without its password. */
export function describeHosts(url: string): string {
  const { path, hosts } = parseUrl(url)
  return path ?? hosts.map(describeHost).join(', ')
}

export function describeHost({ host, port }: Host): string {
  return port === DEFAULT_PORT ? host : `${bracket(host)}:${port}`
}

/** Returns a host as a URL has it. */
function bracket(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** Returns the URL of one of its hosts. */
export function withHost(url: string, { host, port }: Host): string {
  const one = new URL(splitHosts(url)[0] ?? url)
  one.host = `${bracket(host)}:${port}`
  return one.href
}

const DEFAULT_PORT = 5432

/** Returns a URL for each host. `URL` rejects a list of them. */
function splitHosts(url: string): string[] {
  const [, before = '', hosts = '', after = ''] = PARTS.exec(url) ?? []
  if (!hosts.includes(',')) return [url]
  return hosts.split(',').map(host => `${before}${host}${after}`)
}

function toHost({ hostname, port }: URL): Host {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return { host, port: Number(port || DEFAULT_PORT) }
}
