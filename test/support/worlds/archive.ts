import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parquetMetadata, parquetReadObjects, type FileMetaData } from 'hyparquet'
import { runRecorded } from '../../../src/log/archive/runs.ts'
import { createFolderStore } from '../../../src/log/archive/folder-store.ts'
import type { ArchiveStore } from '../../../src/log/archive/store.ts'
import { toId } from '../../../src/base/ids.ts'
import { makeFolder, SCRATCH } from '../scratch.ts'
import { APP_SECRET } from '../secret.ts'
import type { Booted } from '../servers/server.ts'

/** A file of an archive, as a reader of Parquet files sees it. */
export interface ReadFile {
  name: string
  metadata: FileMetaData
  // `any`: tests check every field that they read.
  events: any[]
}

export function newArchiveSettings() {
  return { place: makeFolder(), afterDays: 30, hour: 4, minute: 0 }
}

/** Runs the archive of a server on `store`, by default the folder of the settings. */
export function runArchiveOf(
  { databaseUrl }: Pick<Booted, 'databaseUrl'>,
  settings: ReturnType<typeof newArchiveSettings>,
  { store, isAdopting }: { store?: ArchiveStore; isAdopting?: boolean } = {},
) {
  return runRecorded({
    url: databaseUrl,
    source: { appSecret: APP_SECRET, oldAppSecrets: [], dataDir: SCRATCH },
    settings,
    store: store ?? createFolderStore(settings.place),
    isAdopting,
  })
}

/** Reads all Parquet files of a project with the library, and without code of the program. */
export async function readArchive(folder: string, projectId: string): Promise<ReadFile[]> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    name => name.includes(toId('prj', projectId)) && name.endsWith('.parquet'),
  )
  return Promise.all(
    names.toSorted().map(async name => {
      const { buffer, byteOffset, byteLength } = readFileSync(join(folder, name))
      const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
      const events = await parquetReadObjects({ file })
      return { name, metadata: parquetMetadata(file), events }
    }),
  )
}
