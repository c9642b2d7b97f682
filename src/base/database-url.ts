import {
  findParameterProblem,
  readParameters,
  type Parameters,
  type ReadFile,
} from './database-parameters.ts'

/** A host of a database URL. */
export interface Host {
  host: string
  port: number
}

/** A database URL in parts. */
export interface DatabaseAddress extends Parameters {
  /** All hosts in order. One of them is the primary. */
  hosts: Host[]
  /** The Unix socket, in place of a host. */
  path?: string
  user: string | undefined
  password: string | undefined
  /** Undefined for the name of the user. */
  database: string | undefined
}

interface Parts {
  user: string | undefined
  password: string | undefined
  hosts: string
  database: string | undefined
  parameters: ReadonlyMap<string, string>
}

/** The longest path of a Unix socket in bytes. Linux allows more than macOS and the BSDs. */
export const MAX_SOCKET_PATH_BYTES = process.platform === 'linux' ? 107 : 103

const DEFAULT_PORT = 5432
const LOCALHOST = 'localhost'
const SCHEME = /^postgres(ql)?:\/\//
/** As libpq reads it: the user ends at the first @ before a slash, whatever comes before. */
const PARTS = /^(\w+:\/\/)(?:([^/@]*)@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s
/** Parameters that name hosts other than a Unix socket. */
const OTHER_HOSTS = /^(hostaddr|port|host)=(?!\/|%2F)/i
/** An address in `host=` has no brackets. */
const BARE_IPV6 = /(^|,)([\da-f.]*:[\da-f.:%]*:[\da-f.:%]*)(?=,|$)/gi
const HOST = /^(?:\[([\da-f:.%]+)\]|([^:[\]@\s]*))(?::(\d{0,5}))?$/i

/**
 * Parses the URL of a database as libpq does. It can name several hosts: `a:5432,b:5433`. Throws a
 * TypeError if it is not one.
 */
export function parseUrl(url: string): DatabaseAddress {
  const { user, password, hosts: hostText, database, parameters } = split(url)
  const named = parameters.get('host') || parameters.get('hostaddr')
  const before = toHosts(decode(hostText), parameters.get('port'))
  const ports = parameters.get('port') ?? before.map(({ port }) => port).join(',')
  const hosts = named ? toHosts(named.replaceAll(BARE_IPV6, '$1[$2]'), ports) : before
  const [first = { host: LOCALHOST, port: DEFAULT_PORT }] = hosts
  const path = first.host.startsWith('/') ? `${first.host}/.s.PGSQL.${first.port}` : undefined
  return {
    hosts: path === undefined ? hosts : [{ ...first, host: LOCALHOST }],
    ...(path !== undefined && { path }),
    user: parameters.get('user') ?? user,
    password: parameters.get('password') ?? password,
    database: parameters.get('dbname') ?? database,
    ...readParameters(
      parameters,
      path !== undefined || hosts.every(({ host }) => isLoopback(host)),
    ),
  }
}

/** Returns whether the text looks like the URL of a Postgres. `findUrlProblem` reads the rest. */
export function isDatabaseUrl(text: string): boolean {
  return SCHEME.test(text)
}

/** Returns why a database URL cannot be used, and what to write. It shows no value of it. */
export function findUrlProblem(url: string, readFile: ReadFile): string | undefined {
  const [, , , hosts = '', database = ''] = PARTS.exec(url) ?? []
  if (/%(?![\da-f]{2})/i.test(url))
    return 'has a % that is not followed by two hexadecimal digits. Write the % of a password as %25.'
  if (`${hosts}/${database}`.includes('@'))
    return 'has a special character in its user or password. Write @ as %40, / as %2F and : as %3A.'
  try {
    parseUrl(url)
  } catch {
    return /^[^,[]*:[^,]*:/.test(hosts)
      ? 'has a host that is not valid. Write an IPv6 address in brackets: [::1]:5432.'
      : 'must be a URL like postgres://user:password@host/database. Its host or port is not valid.'
  }
  const { parameters } = split(url)
  const { path } = parseUrl(url)
  if (path !== undefined && Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
    return `has a folder whose path is too long for a socket: ${MAX_SOCKET_PATH_BYTES} bytes with /.s.PGSQL.5432. Write a shorter one, such as that of a link.`
  if (path !== undefined && parameters.get('channel_binding') === 'require')
    return 'has channel_binding=require, which needs TLS, and a socket file has none. Remove it.'
  return findParameterProblem(parameters, readFile)
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
  const [, scheme = '', user, , database, query = ''] = PARTS.exec(url) ?? []
  const others = query.split('&').filter(one => one !== '' && !OTHER_HOSTS.test(one))
  return [
    scheme,
    user === undefined ? '' : `${user}@`,
    `${bracket(host)}:${port}`,
    database === undefined ? '' : `/${database}`,
    others.length > 0 ? `?${others.join('&')}` : '',
  ].join('')
}

function split(url: string): Parts {
  const match = SCHEME.test(url) ? PARTS.exec(url) : null
  if (!match) throw new TypeError('The text is not the URL of a Postgres')
  const [, , userinfo, hosts = '', database, query = ''] = match
  const colon = userinfo?.indexOf(':') ?? -1
  const user = colon < 0 ? userinfo : userinfo?.slice(0, colon)
  const pairs = query.split('&').filter(one => one !== '')
  return {
    user: user ? decode(user) : undefined,
    password: colon < 0 ? undefined : decode(userinfo?.slice(colon + 1) ?? ''),
    hosts,
    database: database ? decode(database) : undefined,
    parameters: new Map(
      pairs.map(pair => {
        const equals = pair.indexOf('=')
        if (equals < 0) return [decode(pair), '']
        const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
        // Many programs write a space as a plus.
        return [decode(name), decode(name === 'options' ? value.replaceAll('+', '%20') : value)]
      }),
    ),
  }
}

function toHosts(text: string, portText: string | undefined): Host[] {
  const ports = portText?.split(',') ?? []
  return text.split(',').map((one, nth, all) => {
    const port = ports[nth] ?? ports[0]
    if (one.startsWith('/')) {
      const [, folder = one, own] = /^(.*?)(?::(\d+))?$/.exec(one) ?? []
      return { host: folder, port: toPort(port ?? own) }
    }
    const [, address, name, own] = HOST.exec(one) ?? []
    const host = address ?? name
    if (host === undefined || (host === '' && all.length > 1))
      throw new TypeError('The URL has a host that is not valid')
    return { host: host || LOCALHOST, port: toPort(own || port) }
  })
}

function toPort(text: string | undefined): number {
  const port = text ? Number(text) : DEFAULT_PORT
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new TypeError('The URL has a port that is not valid')
  return port
}

function isLoopback(host: string): boolean {
  return host === LOCALHOST || host === '::1' || host.startsWith('127.')
}

/** Throws a TypeError, as this module does for other mistakes. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new TypeError('The URL has a % that is not followed by two hexadecimal digits')
  }
}
