import { resolve } from 'node:path'
import type { Config } from '../../base/config.ts'
import { parseUrl } from '../../base/database-url.ts'
import { startEmbedded, type EmbeddedOptions } from './embedded.ts'
import { logger } from '../../base/log.ts'
import { findInaccessibleFolder } from './folders.ts'

/** An open database, and the folder for the files that belong to it. */
export interface Database {
  url: string
  /** The URL for locks of a session, migrations and commands. It leads past a pooler. */
  sessionUrl: string
  /** The URL of a superuser of the embedded database. */
  superuserUrl?: string
  kind: 'external' | 'embedded'
  /** An absolute path. It contains the APP_SECRET, and the data of an embedded database. */
  dataDir: string
  close(): Promise<void>
}

/** Returns the kind and the folder of the configured database. */
export function locateDatabase({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): Pick<Database, 'kind' | 'dataDir'> {
  return databaseUrl
    ? { kind: 'external', dataDir: resolve(dataDir ?? DEFAULT_DATA_DIR) }
    : { kind: 'embedded', dataDir: chooseDataDir(dataDir) }
}

/**
 * Opens the configured database. Starts the embedded one when no URL is set. With `allowsUpgrade`,
 * data of an older major version of Postgres is upgraded. The signal aborts a start of Postgres.
 */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'databaseDirectUrl' | 'dataDir'>,
  { allowsUpgrade = false, signal }: Pick<EmbeddedOptions, 'allowsUpgrade' | 'signal'> = {},
): Promise<Database> {
  const location = locateDatabase(config)
  const { databaseUrl, databaseDirectUrl } = config
  if (databaseUrl) {
    const direct = parseUrl(databaseUrl).isPooled ? databaseDirectUrl : undefined
    return {
      ...location,
      url: databaseUrl,
      sessionUrl: direct ?? databaseUrl,
      close: async () => {},
    }
  }
  const { url, superuserUrl, stop } = await startEmbedded({ ...location, allowsUpgrade, signal })
  return { ...location, url, sessionUrl: url, superuserUrl, close: stop }
}

const DEFAULT_DATA_DIR = './data'
const ROOT_DATA_DIR = '/var/lib/tidings'

/**
 * Returns the configured folder, or `./data`. When this process is root, Postgres runs as the user
 * nobody. If nobody may not enter the current folder (such as /root), the default is
 * /var/lib/tidings.
 */
function chooseDataDir(configured: string | undefined): string {
  if (configured !== undefined) return resolve(configured)
  const closed = findInaccessibleFolder(resolve(DEFAULT_DATA_DIR))
  if (closed === undefined) return resolve(DEFAULT_DATA_DIR)
  logger('db').info('Using {folder} for the data, because Postgres may not enter {closed}', {
    folder: ROOT_DATA_DIR,
    closed,
  })
  return ROOT_DATA_DIR
}
