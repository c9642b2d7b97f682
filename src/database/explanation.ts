import postgres from 'postgres'
import { DAMAGED, isDamage } from '../base/errors.ts'

/** Permanent reasons for a refused connection, by SQLSTATE. */
export const CONNECTION_REFUSALS: Record<string, string> = {
  '28P01': 'rejected the user name or password',
  '28000': 'does not allow this user from this address',
  '3D000': 'has no database with this name',
}

const CORRECT = 'Correct DATABASE_URL.'
const POOLER =
  'A connection pooler rejects the settings of a session. Append pgbouncer=true to the parameters of DATABASE_URL, and set DATABASE_DIRECT_URL to Postgres itself.'
const SCHEMA =
  'The schema of the database is not that of this program. Run `tidings migrate`, or the version of the server.'
const GRANT = 'Make the user of DATABASE_URL the owner of the database and of its tables.'

/** Explanations of errors of Postgres, by SQLSTATE. */
const BY_STATE: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(CONNECTION_REFUSALS).map(([state, text]) => [
      state,
      `Postgres ${text}. ${CORRECT}`,
    ]),
  ),
  '08P01': POOLER,
  '3F000':
    'The schema that DATABASE_URL names does not exist, or its user may not use it. Create it, or correct the URL.',
  '25P04':
    'The database ended a transaction for its length. Reset transaction_timeout for the role and the database.',
  '42P01': SCHEMA,
  '42703': SCHEMA,
  '42883': SCHEMA,
  '42501': `The user of the database lacks a permission. ${GRANT}`,
  '25006': 'The database is read-only. Use the primary server, or wait until it accepts writes.',
  '53100': 'The disk of the database is full. Free some space, and try again.',
  '53300': 'The database has too many connections. Raise max_connections, or stop other programs.',
  '55P03': 'Another program holds a lock of the database. Try again shortly.',
  '57014': 'The database took too long. Try again shortly.',
  '57P01': 'The database was stopped. Try again when it runs.',
  '57P03': 'The database is starting or stopping. Try again shortly.',
}

/** The fields of errors of Postgres, of its driver and of sockets. */
interface DriverError extends Error {
  code?: string
  address?: string | string[]
  port?: number | number[]
  hostname?: string
  syscall?: string
  path?: string
}

/**
 * Explains an error of the database or of its connection in a sentence, with a remedy. Returns
 * undefined for other errors.
 */
export function explainDatabaseError(error: unknown): string | undefined {
  if (error instanceof postgres.PostgresError) {
    if (isDamage(error)) return DAMAGED
    const { code, message, severity } = error
    // An unknown or invalid setting, or one that only superusers may change, ends the start.
    const isOfSetting = ['42704', '22023', '42601', '42501'].includes(code)
    if (
      severity === 'FATAL' &&
      isOfSetting &&
      !message.startsWith('permission denied for database')
    )
      return explainSetting(message)
    const refusal = explainRefusal(error)
    if (refusal !== undefined) return refusal
    if (code === '42501' && message.startsWith('must be owner'))
      return `Another user owns the tables of Tidings. ${GRANT}`
    return (
      BY_STATE[code] ??
      'The database rejected a statement. With LOG_LEVEL=debug, the log has its code.'
    )
  }
  return error instanceof Error ? explainConnection(error) : undefined
}

/** Explains why Postgres refuses a user from an address; undefined if it does not say. */
export function explainRefusal(error: unknown): string | undefined {
  if (!(error instanceof postgres.PostgresError) || error.code !== '28000') return undefined
  const { message } = error
  if (/no encryption|SSL off/.test(message))
    return 'The database requires TLS. Append sslmode=require to the parameters of DATABASE_URL.'
  if (/SSL encryption|SSL on/.test(message))
    return 'Its pg_hba.conf has no entry for this user from this address with TLS. Add one, or append sslmode=disable to the parameters of DATABASE_URL.'
  if (/client certificate/.test(message))
    return 'The database requires a certificate of its client. Set sslcert and sslkey in DATABASE_URL.'
  return undefined
}

/** Explains that Postgres rejects a setting of the session. The message quotes its name first. */
function explainSetting(message: string): string {
  const [, name] = /"([\w.]+)"/.exec(message) ?? []
  const what = name === undefined ? 'the settings' : `the setting ${name}`
  return `Postgres rejects ${what} of the session. Correct options in DATABASE_URL. Tidings requires PostgreSQL 15 or newer.`
}

function explainConnection({ code = '', message, ...error }: DriverError): string | undefined {
  const address = [error.address].flat().join(', ')
  const port = [error.port].flat()[0]
  const at = address === '' ? '' : ` at ${port === undefined ? address : `${address}:${port}`}`
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The host of the database was not found${error.hostname === undefined ? '' : `: ${error.hostname}`}. ${CORRECT}`
    case 'CONNECTION_NO_PRIMARY':
      return `${message}. Promote a standby, or correct DATABASE_URL.`
    case 'ECONNREFUSED':
      return `No database listens${at}. Start Postgres, or correct DATABASE_URL.`
    case 'CONNECT_TIMEOUT':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      // A socket file has neither a network nor a firewall.
      if (address.startsWith('/'))
        return `Postgres does not answer${at}. The machine may be too busy. Try again shortly.`
      return `The database${at} does not respond. Check the network and its firewall, or correct DATABASE_URL.`
    case 'CONNECTION_CLOSED':
    case 'CONNECTION_DESTROYED':
    case 'CONNECTION_ENDED':
    case 'ECONNRESET':
    case 'EPIPE':
      return `The database${at} closed the connection. Check that it runs, and try again.`
    default:
      if (code === 'ENOENT' && error.syscall === 'connect')
        return `There is no socket of Postgres${at}. Start Postgres, or correct DATABASE_URL.`
      return explainTls(code, message, error)
  }
}

const BINDING =
  'Use sslmode=verify-full in place of channel_binding=require: it checks the certificate of the server.'

/** Explains why an encrypted connection failed. Returns undefined for errors of other kinds. */
function explainTls(
  code: string,
  message: string,
  { syscall, path }: Pick<DriverError, 'syscall' | 'path'>,
): string | undefined {
  if (syscall === 'open' && path !== undefined)
    return `A file of DATABASE_URL cannot be read (${code}): ${path}. Correct sslrootcert, sslcert or sslkey.`
  switch (code) {
    case 'ERR_TLS_NOT_SUPPORTED':
      return `${message}. Set it up there, or use sslmode=prefer, which also works without encryption.`
    case 'CHANNEL_BINDING_MISSING':
      return `The server offers no channel binding. ${BINDING}`
    case 'CHANNEL_BINDING_UNKNOWN':
      return `The certificate of the server has a signature without a hash to bind to. ${BINDING}`
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'The certificate of the database is for another host. Correct the host in DATABASE_URL. sslmode=verify-ca accepts every host of the authority.'
    case 'CERT_HAS_EXPIRED':
      return 'The certificate of the database has expired. Renew it.'
    default:
      if (code.includes('ALERT'))
        return `The server rejects the encryption of this client (${code}). It may require a certificate. Set sslcert and sslkey in DATABASE_URL.`
      return /CERT|_TLS_|_SSL_|SSL|SELF_SIGNED|UNABLE_TO/.test(code)
        ? 'The certificate of the database is not trusted. Name the file of its authority: sslrootcert=/path/ca.pem. sslmode=require accepts any certificate.'
        : undefined
  }
}
