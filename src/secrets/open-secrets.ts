import { randomBytes } from 'node:crypto'
import type { Queryable } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import { toAppKey } from './app-key.ts'
import { ensureSecretFile, readSecretFile, toSecretFile, watchSecretFile } from './secret-file.ts'
import { createSecrets, Unreadable, type Place, type Secrets } from './secrets.ts'

/** Where the APP_SECRET of an installation is. */
export interface SecretSource {
  /** As configured; undefined for the one that is kept in `dataDir`. */
  appSecret: Buffer | undefined
  /** Former ones, which only open. */
  oldAppSecrets: readonly Buffer[]
  dataDir: string
}

const log = logger('secrets')
const LOST = 'Where it is lost for good, `tidings secrets reset` says what is lost with it.'
const CANARY: Place = { table: 'sealed_canary', column: 'sealed', rowId: 'canary' }

/**
 * The secrets of an installation. A database in which nothing was sealed yet takes the APP_SECRET of the first who
 * opens, which is made and kept in DATA_DIR where none is configured; from then on it is held to that one. Throws with what to
 * do when it is another, or gone.
 */
export async function openSecrets(sql: Queryable, source: SecretSource): Promise<Secrets> {
  const secrets = findSecrets(source, (await findCanary(sql)) === undefined)
  // Of several first starts one seals it; the others are held to that.
  await sql`
    insert into sealed_canary (sealed)
    values (${sealCanary(secrets)})
    on conflict do nothing
  `
  const problem = await findProblem(sql, source)
  if (problem !== undefined) throw new Error(problem)
  return secrets
}

/**
 * Why what the database keeps cannot be opened with the APP_SECRET of now, as a sentence with what to do; undefined when
 * it can, or nothing was sealed yet. Changes nothing.
 */
export async function findProblem(
  sql: Queryable,
  source: SecretSource,
): Promise<string | undefined> {
  const canary = await findCanary(sql)
  if (canary === undefined) return undefined
  try {
    findSecrets(source, false).open(canary, CANARY)
    return undefined
  } catch (error) {
    if (!(error instanceof Unreadable)) return toReason(error)
    return (
      `The database's secrets are sealed with another APP_SECRET than ${toName(source)}. Set it to what it was; ` +
      `if it was changed on purpose, set APP_SECRET_OLD to the former one. ${LOST}`
    )
  }
}

/** Whether there is an APP_SECRET, or one is yet to be made. */
export function hasSecret({ appSecret, dataDir }: SecretSource): boolean {
  return appSecret !== undefined || readSecretFile(toSecretFile(dataDir)) !== undefined
}

/** Seals the canary with the key of the moment: only whoever has it can open the installation. */
export async function replaceCanary(sql: Queryable, secrets: Secrets): Promise<void> {
  await sql`update sealed_canary set sealed = ${sealCanary(secrets)}`
}

/** What the APP_SECRET of now seals and opens. Where there is none it is made, if it may, or else that is an error. */
export function findSecrets({ appSecret, oldAppSecrets, dataDir }: SecretSource, mayMake: boolean) {
  const toKeys = (secrets: readonly Buffer[]) => [...secrets, ...oldAppSecrets].map(toAppKey)
  if (appSecret) {
    const keys = toKeys([appSecret])
    return createSecrets(() => keys)
  }
  const file = toSecretFile(dataDir)
  if (!readSecretFile(file)) {
    if (!mayMake) {
      throw new Error(
        `There is no APP_SECRET, and no ${file}, but the database keeps secrets that one has sealed. ` +
          `Set APP_SECRET to it, or restore that file. ${LOST}`,
      )
    }
    try {
      ensureSecretFile(file)
    } catch (error) {
      throw new Error(`APP_SECRET is not set, and none can be kept in ${file}: ${toReason(error)}`)
    }
    log.info('Made an APP_SECRET in {file}: keep it with your backups', { file })
  }
  return createSecrets(watchSecretFile(file, toKeys))
}

async function findCanary(sql: Queryable): Promise<string | undefined> {
  const [row] = await sql<{ sealed: string }[]>`select sealed from sealed_canary`
  return row?.sealed
}

function sealCanary(secrets: Secrets): string {
  return secrets.seal(randomBytes(16).toString('hex'), CANARY)
}

function toName({ appSecret, dataDir }: SecretSource): string {
  return appSecret ? 'the one in APP_SECRET' : `the one in ${toSecretFile(dataDir)}`
}
