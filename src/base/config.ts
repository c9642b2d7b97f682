import { resolve } from 'node:path'
import {
  toBaseUrl,
  toBearerToken,
  toContacts,
  toDatabaseUrl,
  toHost,
  toHosts,
  toLogFormat,
  toLogLevel,
  toNetworks,
  toHeaderName,
  toPort,
  toQuota,
  toKeep,
  toTimeZone,
  toPassphrase,
  toTimeOfDay,
  MIN_PASSPHRASE,
  IS_TARGET,
  toSwitch,
  toSecrets,
  toWebUrl,
  wholeNumber,
  parseAppSecret,
  parseVapidSubject,
  parseEmail,
} from './config/values.ts'
import { toEgressProxy } from './config/egress-proxy.ts'
import { findUrlProblem, parseUrl } from './database-url.ts'
import { findRemoved, isSecretName, NAMES, type ReadSetting } from './config/names.ts'
import { listProviderVariables, toProviders } from './config/openid.ts'
import { LOG_FORMATS, LOG_LEVELS } from './log.ts'
import { findPasswordProblem } from './passwords/policy.ts'

/** The quotas of each organization. */
export interface QuotaLimits {
  eventsPerMinute: number
  /** Bytes of the texts of events, in UTF-8. A day begins at midnight UTC. */
  bytesPerDay: number
  channels: number
  webhooks: number
}

/** When the server makes backups, and where. */
export interface BackupSchedule {
  /** An absolute path. */
  folder: string
  /** The time of day in the time zone of the process. */
  hour: number
  minute: number
  /** How many copies are kept. */
  keep: number
  passphrase: string
}

/** Reports all problems of the configuration. */
export class ConfigError extends Error {
  readonly problems: string[]

  constructor(problems: string[]) {
    super(`The configuration is invalid:\n  ${problems.join('\n  ')}`)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export type Env = Readonly<Record<string, string | undefined>>

const QUOTA = 'a whole number from 1 to 10^15'
const POSTGRES_URL = 'a URL like postgres://user:password@host/database'

/**
 * Parses the configuration. Each variable can also be set as `NAME_FILE`, the path of a file that
 * contains the value. Throws a `ConfigError` that lists every problem.
 */
export function parseConfig(env: Env, readFile: (path: string) => string): Config {
  const problems: string[] = []
  const values = readValues(env, readFile, problems)
  for (const name of Object.keys(env)) {
    const removed = findRemoved(name)
    if (removed !== undefined) problems.push(`${name} was ${removed}`)
  }
  const read: ReadSetting = (name, what, parse) => {
    const text = values.get(name)
    if (text === undefined) return undefined
    const value = parse(text)
    if (value === undefined) {
      problems.push(`${name} must be ${what}${toShown(name, text)}${findOrigin(name, text)}`)
    }
    return value
  }

  const config = readConfig(env, values, read, problems)
  const path = new URL(config.baseUrl ?? 'http://localhost').pathname
  if (path !== '/') {
    problems.push(
      `BASE_URL has the path ${path}, and Tidings serves only the root of a host. Give it a host name of its own, like https://tidings.example.com.`,
    )
  }
  problems.push(...findDatabaseProblems(config, readFile))
  if (config.backupSchedule && env['TZ'] && config.timeZone === undefined) {
    problems.push(
      `TZ must be the name of a time zone like Europe/Berlin, because BACKUP_AT is a time in it${toShown('TZ', env['TZ'])}`,
    )
  }
  if (config.authProxyHeader !== undefined && config.trustedProxies.length === 0) {
    problems.push(
      'AUTH_PROXY_HEADER needs TRUSTED_PROXIES, because everybody could send the header otherwise. Set TRUSTED_PROXIES to the network of your proxy.',
    )
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/** Reads all settings. Adds a sentence to `problems` for each one that is invalid. */
function readConfig(
  env: Env,
  values: ReadonlyMap<string, string>,
  read: ReadSetting,
  problems: string[],
) {
  return {
    port: read('PORT', 'a port from 0 to 65535', toPort) ?? 3000,
    host: read('HOST', 'an address or a host name', toHost) ?? '127.0.0.1',
    /** Without a trailing slash; undefined for `http://localhost:PORT`. */
    baseUrl: read('BASE_URL', 'a URL like https://tidings.example.com', toBaseUrl),
    /** Undefined for the embedded Postgres in `dataDir`. */
    databaseUrl: read('DATABASE_URL', POSTGRES_URL, toDatabaseUrl),
    /**
     * The database itself, without a pooler in front of it. LISTEN does not work through a pooler.
     */
    databaseDirectUrl: read('DATABASE_DIRECT_URL', POSTGRES_URL, toDatabaseUrl),
    /** Undefined for the default, `./data`. */
    dataDir: values.get('DATA_DIR'),
    /** 32 bytes. Undefined when the secret is kept in `dataDir`. */
    appSecret: read('APP_SECRET', '32 bytes in base64 or hex', parseAppSecret),
    /** Previous secrets, which only decrypt. */
    oldAppSecrets:
      read(
        'APP_SECRET_OLD',
        '32 bytes in base64 or hex, or a list of them separated by commas',
        toSecrets,
      ) ?? [],
    /** The number of processes that share the port. */
    workers: read('WORKERS', 'a whole number from 1 to 16', wholeNumber(1, 16)) ?? 1,
    /** How long a stop serves requests while the server says that it is not ready. */
    drainSeconds: read('DRAIN_SECONDS', 'a whole number from 0 to 300', wholeNumber(0, 300)) ?? 0,
    /** The metrics port of the first worker. The others use the following ports. */
    metricsPort: read('METRICS_PORT', 'a port from 0 to 65535', toPort),
    /** The address that serves metrics. */
    metricsHost: read('METRICS_HOST', 'an address or a host name', toHost) ?? '127.0.0.1',
    /** The bearer token that metrics require. Undefined for none. */
    metricsToken: read(
      'METRICS_TOKEN',
      'a text of 16 to 512 visible ASCII characters without spaces',
      toBearerToken,
    ),
    /** Networks whose X-Forwarded-For header is trusted. */
    trustedProxies:
      read('TRUSTED_PROXIES', 'networks like 10.0.0.0/8, separated by commas', toNetworks) ?? [],
    /** The header with which a trusted proxy names the e-mail address of the visitor. */
    authProxyHeader: read(
      'AUTH_PROXY_HEADER',
      'the name of a header like Remote-Email',
      toHeaderName,
    ),
    /** The OpenID Connect providers, ordered by label. */
    providers: toProviders(values, problems),
    /** True if only passwords that were set from the machine sign in. */
    arePasswordsOff: read('PASSWORDS', 'on or off', toSwitch) === false,
    /** Private networks that outgoing requests may reach. */
    egressAllowCidrs:
      read('EGRESS_ALLOW_CIDRS', 'networks like 10.0.0.0/8, separated by commas', toNetworks) ?? [],
    /** The proxy of outgoing requests. */
    egressProxy: toEgressProxy(env, read, problems),
    /** Hosts of additional push services, with the port unless it is 443. */
    pushHosts:
      read('PUSH_HOSTS', 'hosts like push.example.com:8443, separated by commas', toHosts) ?? [],
    /** The contact for push services. Undefined for the e-mail address of the operator. */
    vapidSubject: read(
      'VAPID_SUBJECT',
      'a mailto: or https: address that is reachable from the Internet',
      parseVapidSubject,
    ),
    /** URIs of contacts for security reports, the preferred one first. */
    securityContacts:
      read(
        'SECURITY_CONTACT',
        'an e-mail address or an https: URL, or a list of them separated by commas',
        toContacts,
      ) ?? [],
    /** The URL of the source code of this server. Undefined for the repository of Tidings. */
    sourceUrl: read('SOURCE_URL', 'a URL like https://git.example.com/tidings', toWebUrl),
    quotas: {
      eventsPerMinute: read('QUOTA_EVENTS_PER_MINUTE', QUOTA, toQuota) ?? 1_000_000,
      bytesPerDay: read('QUOTA_BYTES_PER_DAY', QUOTA, toQuota) ?? 50_000_000_000,
      channels: read('QUOTA_CHANNELS', QUOTA, toQuota) ?? 100_000,
      webhooks: read('QUOTA_WEBHOOKS', QUOTA, toQuota) ?? 500,
    },
    logLevel: read('LOG_LEVEL', `one of ${LOG_LEVELS.join(', ')}`, toLogLevel) ?? 'info',
    /** Undefined for text on a terminal, and JSON elsewhere. */
    logFormat: read('LOG_FORMAT', LOG_FORMATS.join(' or '), toLogFormat),
    /** The passphrase of backups, at least 12 characters. */
    backupPassphrase: read(
      'BACKUP_PASSPHRASE',
      `a text of at least ${MIN_PASSPHRASE} characters`,
      toPassphrase,
    ),
    /** The schedule of backups. Undefined without BACKUP_DIR. */
    backupSchedule: toBackupSchedule(values, read, problems),
    /** The zone of the times of day. Undefined for that of the machine. */
    timeZone: env['TZ'] ? toTimeZone(env['TZ']) : undefined,
    /** True if retention deletes no event before `tidings export` has written it to a file. */
    retentionNeedsExport: read('RETENTION_NEEDS_EXPORT', 'on or off', toSwitch) ?? false,
    /** The first owner. Undefined when the setup page creates the owner. */
    owner: readOwner(values, problems),
  }
}

/** The parsed settings. */
export type Config = ReturnType<typeof readConfig>

/** Lists the problems of the URLs of the database, alone and together. */
function findDatabaseProblems(config: Config, readFile: (path: string) => string): string[] {
  const { databaseUrl, databaseDirectUrl } = config
  const tryToRead = (path: string) => {
    try {
      return readFile(path)
    } catch {
      return undefined
    }
  }
  const problems = [
    ['DATABASE_URL', databaseUrl],
    ['DATABASE_DIRECT_URL', databaseDirectUrl],
  ].flatMap(([name, url]) => {
    const problem = url && findUrlProblem(url, tryToRead)
    return problem ? [`${name} ${problem}`] : []
  })
  // Only URLs without a problem can be parsed.
  const own = problems.length === 0 && databaseUrl ? parseUrl(databaseUrl) : undefined
  if (own?.isPooled && !databaseDirectUrl) {
    problems.push(
      'DATABASE_DIRECT_URL is missing. DATABASE_URL with pgbouncer=true needs it. Set it to Postgres itself.',
    )
  }
  if (own && databaseDirectUrl && parseUrl(databaseDirectUrl).searchPath !== own.searchPath) {
    problems.push('DATABASE_DIRECT_URL needs the same schema as DATABASE_URL.')
  }
  return problems
}

function toBackupSchedule(
  values: ReadonlyMap<string, string>,
  read: ReadSetting,
  problems: string[],
): BackupSchedule | undefined {
  const folder = values.get('BACKUP_DIR')
  const at = read('BACKUP_AT', 'a time of day like 03:15', toTimeOfDay) ?? { hour: 3, minute: 0 }
  const keep = read('BACKUP_KEEP', 'a whole number from 1 to 1000', toKeep) ?? 7
  if (folder === undefined) return undefined
  const passphrase = values.get('BACKUP_PASSPHRASE')
  if (passphrase === undefined) {
    problems.push('BACKUP_PASSPHRASE is missing. BACKUP_DIR needs it. Set both, or neither.')
  }
  return { folder: resolve(folder), ...at, keep, passphrase: passphrase ?? '' }
}

function readValues(
  env: Env,
  readFile: (path: string) => string,
  problems: string[],
): Map<string, string> {
  const values = new Map<string, string>()
  for (const name of [...NAMES, ...listProviderVariables(env)]) {
    const trim = (text: string) =>
      // White space can be part of a password, except for a line end. Shells keep the CR of a file
      // from Windows.
      (name === 'OWNER_PASSWORD' || name === 'BACKUP_PASSPHRASE') && text.trim()
        ? text.replace(/\r?\n?$/, '')
        : text.trim()
    const value = trim(env[name] ?? '')
    const file = env[`${name}_FILE`]?.trim()
    if (value && file) problems.push(`${name} and ${name}_FILE are both set. Remove one of them.`)
    else if (value) values.set(name, value)
    else if (file) {
      try {
        const text = trim(readFile(file))
        if (text) values.set(name, text)
        else
          problems.push(
            `${name}_FILE must be the path of a file that is not empty${toShown(name, file)}`,
          )
      } catch {
        problems.push(`${name}_FILE must be the path of a readable file${toShown(name, file)}`)
      }
    }
  }
  return values
}

/** Returns a sentence about a program that sets a variable of this name for another purpose. */
function findOrigin(name: string, text: string): string {
  if (name.endsWith('PORT') && text.startsWith('tcp://'))
    return ' Kubernetes sets it for a Service of that name. Set enableServiceLinks: false in the pod.'
  if (name === 'HOST' && IS_TARGET.test(text))
    return ' Compilers of conda set it. Set HOST=127.0.0.1 for Tidings.'
  return ''
}

/** Returns the end of a problem: the given text, unless it can contain a password. */
function toShown(name: string, text: string): string {
  return isSecretName(name) || text.includes('@') ? '.' : `. It is ${JSON.stringify(text)}.`
}

/** Reads OWNER_EMAIL and OWNER_PASSWORD: both or neither. The password must match the policy. */
function readOwner(
  values: ReadonlyMap<string, string>,
  problems: string[],
): { email: string; password: string } | undefined {
  const [given, password] = [values.get('OWNER_EMAIL'), values.get('OWNER_PASSWORD')]
  if (given === undefined && password === undefined) return undefined
  const email = given === undefined ? undefined : parseEmail(given)
  if (given !== undefined && email === undefined) {
    problems.push('OWNER_EMAIL must be an e-mail address.')
  }
  const problem =
    password === undefined
      ? undefined
      : findPasswordProblem(password, { email: email ?? '', name: '' })
  if (problem) problems.push(`OWNER_PASSWORD was not accepted. ${problem.message}`)
  for (const [name, value] of [
    ['OWNER_EMAIL', given],
    ['OWNER_PASSWORD', password],
  ] as const) {
    const isReported = problems.some(other => other.startsWith(name))
    if (value === undefined && !isReported) {
      problems.push(`${name} is missing. Set both OWNER_EMAIL and OWNER_PASSWORD, or neither.`)
    }
  }
  // When one is missing, there is a problem, and the result is not used.
  return { email: email ?? '', password: password ?? '' }
}
