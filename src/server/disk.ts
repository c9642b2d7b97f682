import { statfs } from 'node:fs/promises'
import { withTimeout } from '../base/functions.ts'

/** A disconnected network disk never replies. */
const DEADLINE_MS = 1_000

export interface DiskUsage {
  folder: string
  freeBytes: number
  totalBytes: number
}

/** Returns the space on the disk of a folder. Null when it is missing or silent for a second. */
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
