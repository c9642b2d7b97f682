import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { startEmbedded } from './embedded.ts'
import { logger } from '../log.ts'
import { findInaccessibleFolder } from './folders.ts'

/** An open database and the folder beside it. */
export interface Database {
  url: string
  kind: 'external' | 'embedded'
  /** The folder for files that are kept beside the database. */
  dataDir: string
  close(): Promise<void>
}

/** Returns the kind of database that the configuration names, and its folder. */
export function locateDatabase({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): Pick<Database, 'kind' | 'dataDir'> {
  return databaseUrl
    ? { kind: 'external', dataDir: resolve(dataDir ?? DEFAULT_DATA_DIR) }
    : { kind: 'embedded', dataDir: chooseDataDir(dataDir) }
}

/**
 * Opens the database that the configuration names, or else starts the embedded one. `allowsUpgrade` upgrades data of an
 * older major version of Postgres.
 */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { allowsUpgrade = false } = {},
): Promise<Database> {
  const place = locateDatabase(config)
  if (config.databaseUrl) return { ...place, url: config.databaseUrl, close: async () => {} }
  const embedded = await startEmbedded({ ...place, allowsUpgrade })
  return { ...place, url: embedded.url, close: () => embedded.stop() }
}

const DEFAULT_DATA_DIR = './data'
const ROOT_DATA_DIR = '/var/lib/tidings'

/**
 * Returns the configured folder, or `./data`. For root, Postgres runs as nobody: when nobody may not enter the current
 * folder (such as /root), the default is /var/lib/tidings.
 */
function chooseDataDir(configured: string | undefined): string {
  if (configured !== undefined) return resolve(configured)
  const closed = findInaccessibleFolder(resolve(DEFAULT_DATA_DIR))
  if (closed === undefined) return resolve(DEFAULT_DATA_DIR)
  logger('db').warning('Keeping the data in {folder}, because Postgres may not enter {closed}', {
    folder: ROOT_DATA_DIR,
    closed,
  })
  return ROOT_DATA_DIR
}
