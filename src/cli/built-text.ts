import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findEmbeddedFile } from '../base/platform.ts'

/** The path without extension of the texts that `bun run compile` leaves in a checkout. */
const BESIDE = join(import.meta.dirname, '../../dist/tidings')

/**
 * Returns a text that was made for the executable, from inside of it or from the checkout. Throws
 * when the checkout was never compiled.
 */
export async function readBuiltText(extension: string): Promise<string> {
  const embedded = await findEmbeddedFile(extension)?.text()
  if (embedded !== undefined) return embedded
  try {
    return readFileSync(`${BESIDE}${extension}`, 'utf8')
  } catch {
    throw new Error('This checkout has not been compiled. Run `bun run compile` first.')
  }
}
