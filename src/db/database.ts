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

/** The database that the configuration names, or else the embedded one, started if need be. */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
): Promise<Database> {
  if (config.databaseUrl) {
    const dataDir = resolve(config.dataDir ?? DEFAULT_DATA_DIR)
    return { url: config.databaseUrl, kind: 'external', dataDir, close: async () => {} }
  }
  const dataDir = chooseDataDir(config.dataDir)
  const embedded = await startEmbedded({ dataDir })
  return { url: embedded.url, kind: 'embedded', dataDir, close: () => embedded.stop() }
}
