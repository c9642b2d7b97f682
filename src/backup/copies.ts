import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** The name of a rotated copy, such as `tidings-2026-11-22T031500Z.backup`. */
const NAME = /^tidings-\d{4}-\d{2}-\d{2}T\d{6}Z\.backup$/
/** A temporary file of such a copy. */
const PART = /^tidings-\d{4}-\d{2}-\d{2}T\d{6}Z\.backup\.\d+\.part$/
const ABANDONED_MS = 24 * 3_600_000

/** Returns the name of the rotated copy that is made at this time. */
export function toCopyName(at: Date): string {
  return `tidings-${at.toISOString().replace(/\.\d+/, '').replaceAll(':', '')}.backup`
}

/**
 * Deletes all but the newest `keep` rotated copies in a folder, and temporary files that a killed
 * backup left there a day ago. Returns the deleted copies. Other files stay.
 */
export function removeOldCopies(folder: string, keep: number): string[] {
  const names = readdirSync(folder)
  const old = names
    .filter(name => NAME.test(name))
    .toSorted()
    .slice(0, -keep)
    .map(name => join(folder, name))
  const abandoned = names
    .filter(name => PART.test(name))
    .map(name => join(folder, name))
    .filter(
      path => Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > ABANDONED_MS,
    )
  for (const path of [...old, ...abandoned]) rmSync(path, { force: true })
  return old
}
