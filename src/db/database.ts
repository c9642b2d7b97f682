import type { Config } from '../config.ts'
import { chooseDataDir } from './data-dir.ts'
import { startEmbedded } from './embedded.ts'

/** Where the data is, and how to let go of it. */
export interface Database {
  url: string
  kind: 'external' | 'embedded'
  close(): Promise<void>
}

/** The database that the configuration names, or else the embedded one, started if need be. */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
): Promise<Database> {
  if (config.databaseUrl) {
    return { url: config.databaseUrl, kind: 'external', close: async () => {} }
  }
  const embedded = await startEmbedded({ dataDir: chooseDataDir(config.dataDir) })
  return { url: embedded.url, kind: 'embedded', close: () => embedded.stop() }
}
