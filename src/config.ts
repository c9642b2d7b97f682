import ipaddr from 'ipaddr.js'
import { LOG_LEVELS } from './log.ts'

export interface Config {
  port: number
  host: string
  /** Without a trailing slash; undefined for `http://localhost:PORT`. */
  baseUrl: string | undefined
  /** Undefined for the embedded Postgres in `dataDir`. */
  databaseUrl: string | undefined
  /** Undefined for the default, `./data`. */
  dataDir: string | undefined
  metricsPort: number | undefined
  /** Networks whose X-Forwarded-For is believed. */
  trustedProxies: string[]
  logLevel: (typeof LOG_LEVELS)[number]
}

/** Everything that is wrong with the configuration, at once. */
export class ConfigError extends Error {
  readonly problems: string[]

  constructor(problems: string[]) {
    super(
      `The configuration has ${problems.length === 1 ? 'a problem' : 'problems'}:\n  ${problems.join('\n  ')}`,
    )
    this.name = 'ConfigError'
    this.problems = problems
  }
}

type Env = Readonly<Record<string, string | undefined>>

const NAMES = [
  'PORT',
  'HOST',
  'BASE_URL',
  'DATABASE_URL',
  'DATA_DIR',
  'METRICS_PORT',
  'TRUSTED_PROXIES',
  'LOG_LEVEL',
] as const

/**
 * Reads the configuration from `env`. Each variable may also come as `NAME_FILE`, the path of a file with the value,
 * which `readFile` reads. Throws a `ConfigError` that lists every problem.
 */
export function parseConfig(env: Env, readFile: (path: string) => string): Config {
  const problems: string[] = []
  const values = readValues(env, readFile, problems)
  const read = <Value>(
    name: (typeof NAMES)[number],
    what: string,
    parse: (text: string) => Value | undefined,
  ): Value | undefined => {
    const text = values.get(name)
    if (text === undefined) return undefined
    const value = parse(text)
    if (value === undefined) problems.push(`${name} must be ${what}${toShown(name, text)}`)
    return value
  }

  const config: Config = {
    port: read('PORT', 'a port from 0 to 65535', toPort) ?? 3000,
    host: read('HOST', 'an address or a host name', toHost) ?? '127.0.0.1',
    baseUrl: read('BASE_URL', 'a URL like https://tidings.example.com', toBaseUrl),
    databaseUrl: read(
      'DATABASE_URL',
      'a URL like postgres://user:password@host/database',
      toDatabaseUrl,
    ),
    dataDir: values.get('DATA_DIR'),
    metricsPort: read('METRICS_PORT', 'a port from 0 to 65535', toPort),
    trustedProxies:
      read('TRUSTED_PROXIES', 'networks like 10.0.0.0/8, separated by commas', toNetworks) ?? [],
    logLevel: read('LOG_LEVEL', `one of ${LOG_LEVELS.join(', ')}`, toLogLevel) ?? 'info',
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function readValues(
  env: Env,
  readFile: (path: string) => string,
  problems: string[],
): Map<string, string> {
  const values = new Map<string, string>()
  for (const name of NAMES) {
    const value = env[name]?.trim()
    const file = env[`${name}_FILE`]?.trim()
    if (value && file) problems.push(`${name} and ${name}_FILE are both set: keep one`)
    else if (value) values.set(name, value)
    else if (file) {
      try {
        const text = readFile(file).trim()
        if (text) values.set(name, text)
        else problems.push(`${name}_FILE must name a file that is not empty${toShown(name, file)}`)
      } catch {
        problems.push(`${name}_FILE must name a file that can be read${toShown(name, file)}`)
      }
    }
  }
  return values
}

/** What is there instead, for the end of a problem; nothing where it may hold a password. */
function toShown(name: string, text: string): string {
  return name === 'DATABASE_URL' || text.includes('@') ? '' : `: it is ${JSON.stringify(text)}`
}

function toPort(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}

function toHost(text: string): string | undefined {
  return /^[0-9A-Za-z.:_-]+$/.test(text) ? text : undefined
}

function toBaseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

function toDatabaseUrl(text: string): string | undefined {
  return URL.canParse(text) && /^postgres(ql)?:$/.test(new URL(text).protocol) ? text : undefined
}

function toNetworks(text: string): string[] | undefined {
  const networks = text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
  const full = networks.map(part =>
    part.includes('/') ? part : `${part}/${part.includes(':') ? 128 : 32}`,
  )
  return full.every(network => ipaddr.isValidCIDR(network)) ? full : undefined
}

function toLogLevel(text: string): Config['logLevel'] | undefined {
  return LOG_LEVELS.find(level => level === text.toLowerCase())
}
