import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { chooseDataDir, DEFAULT_DATA_DIR } from './data-dir.ts'
import { startEmbedded } from './embedded.ts'

/** Where the data is, and how to let go of it. */
export interface Database {
  url: string
  kind: 'external' | 'embedded'
  /** The folder for what is kept beside the database. */
  dataDir: string
  close(): Promise<void>
}

/** What kind of database the configuration names, and which folder. */
export function findPlace({
  databaseUrl,
  dataDir,
}: Pick<Config, 'databaseUrl' | 'dataDir'>): Pick<Database, 'kind' | 'dataDir'> {
  return databaseUrl
    ? { kind: 'external', dataDir: resolve(dataDir ?? DEFAULT_DATA_DIR) }
    : { kind: 'embedded', dataDir: chooseDataDir(dataDir) }
}

/**
 * The database that the configuration names, or else the embedded one, started if need be, and carried over from an older
 * major version of Postgres where `carriesOver`.
 */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { carriesOver = false } = {},
): Promise<Database> {
  const place = findPlace(config)
  if (config.databaseUrl) return { ...place, url: config.databaseUrl, close: async () => {} }
  const embedded = await startEmbedded({ ...place, carriesOver })
  return { ...place, url: embedded.url, close: () => embedded.stop() }
}
