import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Queryable } from '../../database/sql.ts'

/** A rotated copy: its time, and the id of its installation. */
const NAME = /^tidings-\d{4}-\d{2}-\d{2}T\d{6}Z-([0-9a-f]{8})\.backup$/
/** The end of the name of a temporary file. The name of its file comes before. */
const PART_END = /\.[0-9a-f]{12}\.part$/
const ABANDONED_MS = 24 * 3_600_000

/** The result of a rotation. */
export interface Rotation {
  /** The paths of the deleted copies. */
  deleted: string[]
  /** The paths of copies with a later time than the newest one. Clocks were wrong. */
  future: string[]
  /** The number of copies of other installations. */
  foreign: number
}

/**
 * Returns the name of the rotated copy that is made at this time, such as
 * `tidings-2026-11-22T031500Z-1f2e3d4c.backup`. A restore changes the id, so copies of the restored
 * installation do not replace those of the first one.
 */
export async function findCopyName(sql: Queryable, at: Date): Promise<string> {
  const [{ id }] = await sql<[{ id: string }]>`select left(id::text, 8) as id from installation`
  return `tidings-${at.toISOString().replace(/\.\d+/, '').replaceAll(':', '')}-${id}.backup`
}

/**
 * Deletes the oldest copies of an installation beside `newest`, which was just written. It and the
 * `keep - 1` before it stay, as does every file that this installation has not named.
 */
export function rotateCopies(newest: string, keep: number): Rotation {
  const folder = dirname(newest)
  const [name, id] = NAME.exec(basename(newest)) ?? []
  if (name === undefined) throw new Error(`${newest} is not a rotated copy`)
  const copies = readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isFile() && NAME.test(entry.name))
    .map(entry => entry.name)
  const own = copies.filter(other => NAME.exec(other)?.[1] === id).toSorted()
  const old = own.filter(other => other < name).slice(0, keep > 1 ? 1 - keep : undefined)
  const deleted = old.map(other => join(folder, other))
  for (const path of deleted) rmSync(path, { force: true })
  return {
    deleted,
    future: own.filter(other => other > name).map(other => join(folder, other)),
    foreign: copies.length - own.length,
  }
}

/** Returns whether the folder has a later copy of the same installation than `file`. */
export function hasLaterCopy(file: string): boolean {
  const id = NAME.exec(basename(file))?.[1]
  return readdirSync(dirname(file)).some(
    other => NAME.exec(other)?.[1] === id && other > basename(file),
  )
}

/** Returns a path for the temporary file of `file`. No other process uses it. */
export function toPartPath(file: string): string {
  return `${file}.${randomBytes(6).toString('hex')}.part`
}

/**
 * Deletes the temporary files that backups left a day before `nowMs` when they were killed: those
 * of `file`, and those of all copies of its installation. The clock is that of the file system,
 * which can be another machine's.
 */
export function removeAbandonedParts(file: string, nowMs: number): void {
  const folder = dirname(file)
  const id = NAME.exec(basename(file))?.[1]
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const end = entry.name.search(PART_END)
    if (!entry.isFile() || end < 0) continue
    const target = entry.name.slice(0, end)
    const isOwn = target === basename(file) || (id !== undefined && NAME.exec(target)?.[1] === id)
    const path = join(folder, entry.name)
    const writtenMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
    if (isOwn && nowMs - writtenMs > ABANDONED_MS) rmSync(path, { force: true })
  }
}
