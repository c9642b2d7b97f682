import { statfs } from 'node:fs/promises'
import { withTimeout } from '../functions.ts'

/** A disk of the network may be away, and then never answers. */
const DEADLINE_MS = 1_000

export interface DiskUsage {
  folder: string
  freeBytes: number
  totalBytes: number
}

/** The room on the disk of a folder; null where there is no such folder, or nobody can tell within a second. */
export async function readDiskUsage(folder: string): Promise<DiskUsage | null> {
  const found = statfs(folder).then(
    ({ bsize, bavail, blocks }) => ({
      folder,
      freeBytes: bsize * bavail,
      totalBytes: bsize * blocks,
    }),
    () => null,
  )
  return withTimeout(DEADLINE_MS, found, () => null)
}
