import type { PackedFile } from './pack.ts'

/**
 * The built files and the guides. Both are empty in a checkout before its first build, where
 * commands without a dashboard work all the same.
 */
export const { FILES, DOCS } = await import('./built.ts').catch((error: NodeJS.ErrnoException) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  return { FILES: {} as Readonly<Record<string, PackedFile>>, DOCS: '' }
})

/** Throws unless the dashboard is built. */
export function requireBuilt(): void {
  if (DOCS === '') throw new Error('The dashboard is not built. Run: bun run build:ui')
}
