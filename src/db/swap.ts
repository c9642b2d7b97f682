import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { logger } from '../log.ts'

const log = logger('db')
/** The name of a cluster that all of the data has been carried over to, for the moment of the swap. */
export const CARRIED = 'data.carried'
const OLD = 'data.old-'

/**
 * Puts `fresh`, complete and on disk, in the place of `data`, which was made by Postgres `major`, and returns where that is
 * now. A kill at any point leaves `data` whole, as it was or as it shall be, or `finishSwap` something to do.
 */
export function swap(home: string, fresh: string, major: string): string {
  const data = join(home, 'data')
  const carried = join(home, CARRIED)
  const old = findFree(join(home, `${OLD}${major}`))
  move(home, fresh, carried)
  move(home, data, old)
  move(home, carried, data)
  return old
}

/** Where a swap was cut short when nothing was called `data`, does the rest of it. */
export function finishSwap(home: string): void {
  const data = join(home, 'data')
  const carried = join(home, CARRIED)
  if (!existsSync(data) && existsSync(carried)) move(home, carried, data)
}

/** The folders that swaps have left, with their names. */
export function listOld(home: string): string[] {
  if (!existsSync(home)) return []
  return readdirSync(home)
    .filter(name => name.startsWith(OLD))
    .map(name => join(home, name))
}

/** Each on disk before the next. */
function move(home: string, from: string, to: string): void {
  renameSync(from, to)
  const folder = openSync(home, 'r')
  fsyncSync(folder)
  closeSync(folder)
  log.debug('Moved {from} to {to}', { from, to })
}

function findFree(path: string): string {
  for (let times = 1; ; times++) {
    const free = times === 1 ? path : `${path}-${times}`
    if (!existsSync(free)) return free
  }
}
