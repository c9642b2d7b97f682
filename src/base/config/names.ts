import { PROVIDER_VARIABLE } from './openid.ts'

/** The variables of all settings, except for those of OpenID Connect providers. */
export const NAMES = [
  'PORT',
  'HOST',
  'BASE_URL',
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'DATA_DIR',
  'APP_SECRET',
  'APP_SECRET_OLD',
  'WORKERS',
  'DRAIN_SECONDS',
  'METRICS_PORT',
  'METRICS_HOST',
  'METRICS_TOKEN',
  'TRUSTED_PROXIES',
  'AUTH_PROXY_HEADER',
  'PASSWORDS',
  'EGRESS_ALLOW_CIDRS',
  'EGRESS_PROXY',
  'EGRESS_PROXY_RESOLVES',
  'PUSH_HOSTS',
  'VAPID_SUBJECT',
  'SECURITY_CONTACT',
  'SOURCE_URL',
  'QUOTA_EVENTS_PER_MINUTE',
  'QUOTA_BYTES_PER_DAY',
  'QUOTA_CHANNELS',
  'QUOTA_WEBHOOKS',
  'LOG_LEVEL',
  'LOG_FORMAT',
  'BACKUP_DIR',
  'BACKUP_AT',
  'BACKUP_KEEP',
  'BACKUP_PASSPHRASE',
  'RETENTION_NEEDS_EXPORT',
  'OWNER_EMAIL',
  'OWNER_PASSWORD',
] as const

/** Says what replaces a setting of an earlier version. Undefined for other variables. */
export function findRemoved(variable: string): string | undefined {
  if (/^DATABASE_READ_URL(_FILE)?$/.test(variable))
    return 'removed in 0.4.0: the primary answers all reads. Remove the setting.'
  if (/^RELEASE_INDEX_URL(_FILE)?$/.test(variable))
    return 'removed in 0.4.0 with `tidings upgrade`. Remove the setting.'
  return /^ARCHIVE_(DIR|S3_\w+|AFTER_DAYS|AT)$/.test(variable)
    ? 'removed in 0.4.0: run `tidings export` from a timer, with RETENTION_NEEDS_EXPORT=on. The files of the archive stay where they are.'
    : undefined
}

type SettingName = (typeof NAMES)[number]

const SECRET_NAMES = new Set<string>([
  // It may contain a password.
  'EGRESS_PROXY',
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'APP_SECRET',
  'APP_SECRET_OLD',
  'METRICS_TOKEN',
  'BACKUP_PASSPHRASE',
  'OWNER_EMAIL',
  'OWNER_PASSWORD',
])

/** Returns whether no message may show the value of a setting. */
export function isSecretName(name: string): boolean {
  return SECRET_NAMES.has(name) || /^OIDC_.*_SECRET$/.test(name)
}

/** Returns whether a variable is a setting, or the `_FILE` variant of one. */
export function isSettingName(variable: string): boolean {
  const name = variable.replace(/_FILE$/, '')
  return NAMES.some(known => known === name) || PROVIDER_VARIABLE.test(variable)
}

/** Variables of an environment. */
type Variables = Readonly<Record<string, string | undefined>>

/** Returns all variables. One of `upper` also replaces the `_FILE` variant in `lower`. */
export function overrideSettings(lower: Variables, upper: Variables): Record<string, string> {
  const given = Object.entries(upper).filter(([, value]) => value?.trim())
  const taken = new Set(given.map(([name]) => toBase(name)))
  const kept = Object.entries(lower).filter(
    ([name, value]) => value?.trim() && !taken.has(toBase(name)),
  )
  return Object.fromEntries([...kept, ...given]) as Record<string, string>
}

function toBase(variable: string): string {
  return isSettingName(variable) ? variable.replace(/_FILE$/, '') : variable
}

/**
 * Parses the value of a setting. Returns undefined, and reports that it must be `what`, if `parse`
 * does. Also undefined if it is not set.
 */
export type ReadSetting = <Value>(
  name: SettingName,
  what: string,
  parse: (text: string) => Value | undefined,
) => Value | undefined
