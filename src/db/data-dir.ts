import { resolve } from 'node:path'
import { logger } from '../log.ts'
import { findClosedFolder } from './folders.ts'

export const DEFAULT_DATA_DIR = './data'
const FOR_ROOT = '/var/lib/tidings'

/**
 * The folder of the data: the configured one, or `./data`. When root runs us, Postgres runs as nobody; where that may not
 * enter the folder in which we were started (say, /root), the default is /var/lib/tidings.
 */
export function chooseDataDir(configured: string | undefined): string {
  if (configured !== undefined) return resolve(configured)
  const closed = findClosedFolder(resolve(DEFAULT_DATA_DIR))
  if (closed === undefined) return resolve(DEFAULT_DATA_DIR)
  logger('db').warning('Keeping the data in {folder}, because Postgres may not enter {closed}', {
    folder: FOR_ROOT,
    closed,
  })
  return FOR_ROOT
}
