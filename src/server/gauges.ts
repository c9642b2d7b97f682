import { statfs } from 'node:fs/promises'
import { withTimeout } from '../base/functions.ts'
import { registerGauge } from '../base/metrics.ts'

/** A disconnected network disk never replies. */
const DEADLINE_MS = 1_000

type Batches = Record<'admission' | 'appender' | 'identityWriter', { readonly waiting: number }>

/** Registers gauges of waiting requests. */
export function registerWorkGauges({ admission, appender, identityWriter }: Batches): void {
  registerGauge('tidings_batch_queue_length', 'Requests that wait for the next batch.', {
    label: 'batch',
    readEach: () => ({
      admission: admission.waiting,
      append: appender.waiting,
      identify: identityWriter.waiting,
    }),
  })
}

/** Registers gauges of the disk that has the embedded Postgres. They are absent if it is silent. */
export function registerDiskGauges(dataDir: string): void {
  registerGauge('tidings_data_disk_free_bytes', 'Free bytes on the disk of DATA_DIR.', {
    read: async () => (await readDiskUsage(dataDir))?.freeBytes,
  })
  registerGauge('tidings_data_disk_size_bytes', 'Bytes of the disk of DATA_DIR.', {
    read: async () => (await readDiskUsage(dataDir))?.totalBytes,
  })
}

interface DiskUsage {
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
