import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ArchiveObject, ArchiveStore, ArchiveUpload } from './store.ts'

/** Keeps archive files in a folder. It creates the folder, and gives files mode 0600. */
export function createFolderStore(folder: string): ArchiveStore {
  return {
    location: folder,
    create: name => create(join(folder, name)),
    open: name => openToRead(join(folder, name)),
    async remove(name) {
      await rm(join(folder, name), { force: true })
      await rm(toPartial(join(folder, name)), { force: true })
    },
  }
}

/** Returns the name of a file while it is written. No pattern for Parquet files matches it. */
function toPartial(file: string): string {
  return `${file}.partial`
}

async function create(file: string): Promise<ArchiveUpload> {
  const first = await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const handle = await open(toPartial(file), 'w', 0o600)
  return {
    async write(bytes) {
      // One call can write less than it was given.
      for (let at = 0; at < bytes.length;) {
        at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten
      }
    },
    async finish() {
      await handle.sync()
      await handle.close()
      await rename(toPartial(file), file)
      await syncFolder(dirname(file))
      // A new folder is durable with its entry in the folder above it.
      if (first !== undefined) await syncFoldersAbove(dirname(file), dirname(first))
    },
    async abort() {
      await handle.close().catch(() => {})
      await rm(toPartial(file), { force: true }).catch(() => {})
    },
  }
}

/** Makes a new name in a folder durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes the folders above `folder` durable, up to `top`. */
async function syncFoldersAbove(folder: string, top: string): Promise<void> {
  for (let above = folder; above !== top;) {
    above = dirname(above)
    await syncFolder(above)
  }
}

async function openToRead(file: string): Promise<ArchiveObject | undefined> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return undefined
  const { size } = await handle.stat()
  return {
    byteLength: size,
    async read(start, end) {
      const bytes = new Uint8Array(end - start)
      for (let at = 0; at < bytes.length;) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
        if (bytesRead === 0) throw new Error(`${file} ends at byte ${start + at}`)
        at += bytesRead
      }
      return bytes
    },
    close: () => handle.close(),
  }
}
