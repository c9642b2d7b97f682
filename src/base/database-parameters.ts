import { findClosest } from './closest.ts'

/** How a connection is encrypted. */
export interface Tls {
  /** `prefer` works without TLS, too. `require` accepts any certificate. */
  mode: 'disable' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  /** The file of the authorities. Undefined for those of the system. */
  roots?: string | undefined
  /** The files of the certificate of this client, and of its key. */
  cert?: string | undefined
  key?: string | undefined
  passphrase?: string | undefined
  minVersion?: string | undefined
  maxVersion?: string | undefined
  /** Starts TLS without asking the server first. */
  isDirect: boolean
  /** Ties the password to the certificate of the server: `channel_binding=require`. */
  isBound: boolean
}

/** The meaning of the parameters of a URL. */
export interface Parameters {
  tls: Tls
  /** How long a connection may take. Undefined for the default. */
  connectS: number | undefined
  /** `synchronous_commit`. */
  commit: string | null
  /** The schemas of the tables, as `search_path` has them. */
  searchPath: string | undefined
  /** libpq's `options`, which Postgres or a proxy reads at the start of a session. */
  options: string | undefined
  /** True for `pgbouncer=true`: a pooler gives each transaction another session. */
  isPooled: boolean
}

type Given = ReadonlyMap<string, string>

const MODES: Record<string, Tls['mode']> = {
  disable: 'disable',
  // A server that requires TLS is asked for it at once.
  allow: 'prefer',
  prefer: 'prefer',
  require: 'require',
  'no-verify': 'require',
  'verify-ca': 'verify-ca',
  'verify-full': 'verify-full',
}
/** Values of drivers of other languages. */
const SWITCHES: Record<string, string> = {
  true: 'require',
  '1': 'require',
  false: 'disable',
  '0': 'disable',
}
/** The part of `options` before the search path, and its value. A backslash escapes a space. */
const PATH_OPTION = /^((?:.*\s)?)(?:-c\s*|--)search[_-]path=((?:\\.|[^\s\\])*)/

/** The values that a parameter can have. Undefined for any. */
const TAKEN: Record<string, readonly string[] | undefined> = {
  host: undefined,
  hostaddr: undefined,
  port: undefined,
  user: undefined,
  password: undefined,
  dbname: undefined,
  sslmode: Object.keys(MODES),
  ssl: [...Object.keys(SWITCHES), ...Object.keys(MODES)],
  sslrootcert: undefined,
  sslcert: undefined,
  sslkey: undefined,
  sslpassword: undefined,
  sslnegotiation: ['postgres', 'direct'],
  ssl_min_protocol_version: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'],
  ssl_max_protocol_version: ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'],
  channel_binding: ['disable', 'prefer', 'require'],
  gssencmode: ['disable', 'prefer'],
  target_session_attrs: ['any', 'read-write', 'primary'],
  connect_timeout: undefined,
  options: undefined,
  schema: undefined,
  synchronous_commit: undefined,
  pgbouncer: ['true', 'false'],
  client_encoding: ['UTF8', 'utf8', 'UTF-8', 'utf-8', 'auto'],
}
/** Parameters without an effect here: Tidings has its own pools, names and keepalives. */
const WITHOUT_EFFECT = [
  ...['application_name', 'fallback_application_name', 'load_balance_hosts', 'sslcertmode'],
  ...['sslsni', 'sslcompression', 'krbsrvname', 'gsslib', 'gssdelegation'],
  ...['keepalives', 'keepalives_idle', 'keepalives_interval', 'keepalives_count'],
  'tcp_user_timeout',
  // Of Prisma, node-postgres, and the integrations of Supabase.
  ...['connection_limit', 'pool_timeout', 'socket_timeout', 'statement_cache_size'],
  ...['max_idle_connection_lifetime', 'uselibpqcompat', 'supa', 'workaround'],
]
/** Parameters of libpq and other drivers that ask for what is not there, and what to do. */
const REFUSED: Record<string, string> = {
  service: 'Write the hosts, the user and the database into the URL.',
  servicefile: 'Write the hosts, the user and the database into the URL.',
  passfile: 'Write the password into the URL, and the URL into a file: DATABASE_URL_FILE.',
  sslcrl: 'Remove it.',
  sslcrldir: 'Remove it.',
  requirepeer: 'Remove it.',
  require_auth: 'Use channel_binding=require, which accepts SCRAM alone.',
  requiressl: 'Use sslmode=require.',
  sslaccept: 'Use sslmode=require, or sslmode=verify-full.',
  replication: 'Remove it.',
  currentSchema: 'Use schema.',
}

/** Returns the text of a file. Undefined if it cannot be read. */
export type ReadFile = (path: string) => string | undefined

/** Reads the parameters of a URL. On the same machine, TLS is used only if one asks for it. */
export function readParameters(given: Given, isLocal: boolean): Parameters {
  const { path, rest } = splitOptions(given.get('options') ?? '')
  const schema = given.get('schema')
  const connectS = Number(given.get('connect_timeout'))
  return {
    tls: toTls(given, isLocal),
    // More than that would keep callers waiting, and 0 means no limit at all.
    connectS: connectS > 0 ? Math.min(Math.max(connectS, 2), 10) : undefined,
    commit: given.get('synchronous_commit') ?? null,
    searchPath: schema ? `"${schema.replaceAll('"', '""')}"` : path,
    options: rest,
    isPooled: given.get('pgbouncer') === 'true',
  }
}

function toTls(given: Given, isLocal: boolean): Tls {
  const roots = given.get('sslrootcert') || undefined
  const isBound = given.get('channel_binding') === 'require'
  return {
    mode: toMode(given, roots, { isLocal, isBound }),
    roots: roots === 'system' ? undefined : roots,
    cert: given.get('sslcert') || undefined,
    key: given.get('sslkey') || undefined,
    passphrase: given.get('sslpassword') || undefined,
    minVersion: given.get('ssl_min_protocol_version') || undefined,
    maxVersion: given.get('ssl_max_protocol_version') || undefined,
    isDirect: given.get('sslnegotiation') === 'direct',
    isBound,
  }
}

function toMode(
  given: Given,
  roots: string | undefined,
  { isLocal, isBound }: { isLocal: boolean; isBound: boolean },
): Tls['mode'] {
  const ssl = given.get('ssl')
  const text = given.get('sslmode') || (ssl ? (SWITCHES[ssl] ?? ssl) : undefined)
  const mode = text === undefined && isBound ? 'require' : MODES[text ?? '']
  // As in libpq, the authorities of the system are worth nothing without the name of the host.
  if (roots === 'system') return 'verify-full'
  if (mode === 'require' && roots !== undefined) return 'verify-ca'
  if (mode === 'prefer' && isBound) return 'require'
  return mode ?? (isLocal ? 'disable' : 'prefer')
}

/** Splits `-c search_path=…` from the other settings of `options`, which reach Postgres as is. */
function splitOptions(options: string): { path: string | undefined; rest: string | undefined } {
  const [match = '', before = '', path] = PATH_OPTION.exec(options) ?? []
  if (path === undefined) return { path, rest: options || undefined }
  const rest = `${before}${options.slice(match.length)}`.trim()
  return { path: path.replaceAll(/\\(.)/g, '$1'), rest: rest || undefined }
}

/** Returns why the parameters of a URL cannot be used, and what to write. */
export function findParameterProblem(given: Given, readFile: ReadFile): string | undefined {
  for (const [name, value] of given) {
    const remedy = REFUSED[name]
    if (remedy !== undefined) return `has ${name}, which is not supported. ${remedy}`
    if (WITHOUT_EFFECT.includes(name)) continue
    if (!Object.hasOwn(TAKEN, name)) return toUnknown(name)
    const values = TAKEN[name]
    if (!values || values.includes(value) || value === '') continue
    if (name === 'target_session_attrs')
      return 'needs target_session_attrs=read-write, because a server writes.'
    if (name === 'gssencmode')
      return 'has gssencmode=require, which is not supported. Use sslmode=require.'
    return `needs another value of ${name}: one of ${values.join(', ')}.`
  }
  if (given.get('channel_binding') === 'require' && toTls(given, false).mode === 'disable')
    return 'has channel_binding=require, which needs TLS. Use sslmode=require.'
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const path = given.get(name)
    if (!path || (name === 'sslrootcert' && path === 'system')) continue
    const text = readFile(path)
    if (text === undefined)
      return `has ${name} with the path of a file that cannot be read: ${path}. Correct the path, or the rights of the file.`
    if (!text.includes('-----BEGIN'))
      return `has ${name} with a file that is not PEM: ${path}. Convert it.`
  }
  return undefined
}

function toUnknown(name: string): string {
  // Such a text may be a part of a password.
  if (!/^[a-z]\w{0,39}$/i.test(name)) return 'has a parameter without a valid name. Remove it.'
  const closest = findClosest(name, [...Object.keys(TAKEN), ...WITHOUT_EFFECT])
  return `has the unknown parameter ${name}. ${
    closest === undefined
      ? 'Remove it. Write a setting of Postgres as options=-c%20name=value.'
      : `Did you mean ${closest}?`
  }`
}
