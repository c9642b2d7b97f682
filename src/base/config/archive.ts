import { resolve } from 'node:path'
import type { ReadSetting } from './names.ts'
import { toBaseUrl, toDays, toTimeOfDay } from './values.ts'

/** A bucket of an S3-compatible server. */
export interface BucketSettings {
  /** The address of the bucket, with the start of all names. Without a trailing slash. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

/** The place of old events, and the schedule. */
export interface ArchiveSettings {
  /** An absolute path, or a bucket. */
  place: string | BucketSettings
  /** Months that ended this many days ago are archived. */
  afterDays: number
  /** The time of day in the time zone of the process. */
  hour: number
  minute: number
}

const REQUIRED = ['ARCHIVE_S3_ACCESS_KEY_ID', 'ARCHIVE_S3_SECRET_ACCESS_KEY'] as const

/**
 * Reads the settings of the archive. Undefined without ARCHIVE_DIR and ARCHIVE_S3_URL. Adds a
 * sentence to `problems` for each one that is missing.
 */
export function toArchive(
  values: ReadonlyMap<string, string>,
  read: ReadSetting,
  problems: string[],
): ArchiveSettings | undefined {
  const at = read('ARCHIVE_AT', 'a time of day like 04:15', toTimeOfDay) ?? { hour: 4, minute: 0 }
  const afterDays = read('ARCHIVE_AFTER_DAYS', 'a whole number from 1 to 36500', toDays) ?? 365
  const url = read(
    'ARCHIVE_S3_URL',
    'the URL of a bucket like https://s3.example.com/bucket',
    toBucketUrl,
  )
  const folder = values.get('ARCHIVE_DIR')
  if (folder !== undefined && values.has('ARCHIVE_S3_URL')) {
    problems.push('ARCHIVE_DIR and ARCHIVE_S3_URL are both set. Remove one of them.')
  }
  if (folder !== undefined) return { place: resolve(folder), afterDays, ...at }
  if (!values.has('ARCHIVE_S3_URL')) return undefined
  for (const name of REQUIRED) {
    if (!values.has(name)) problems.push(`${name} is missing. ARCHIVE_S3_URL needs it.`)
  }
  const place = {
    url: url ?? '',
    region: values.get('ARCHIVE_S3_REGION') ?? 'us-east-1',
    accessKeyId: values.get('ARCHIVE_S3_ACCESS_KEY_ID') ?? '',
    secretAccessKey: values.get('ARCHIVE_S3_SECRET_ACCESS_KEY') ?? '',
  }
  return { place, afterDays, ...at }
}

/** Accepts a URL whose path begins with the name of a bucket. */
function toBucketUrl(text: string): string | undefined {
  const url = toBaseUrl(text)
  return url !== undefined && new URL(url).pathname.length > 1 ? url : undefined
}
