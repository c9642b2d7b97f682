import { randomBytes } from 'node:crypto'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import type { Queryable } from '../sql.ts'
import {
  toAppKey,
  createSecrets,
  UnreadableSecret,
  type SealedCell,
  type Secrets,
  type AppKey,
} from './secrets.ts'
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parseAppSecret } from '../../base/config/values.ts'
import { ensureFolder, findOwner, makePrivate, syncFolder } from '../../base/private-files.ts'

/** The source of an installation's APP_SECRET: the configuration, or a file in `dataDir`. */
export interface SecretSource {
  /** The configured APP_SECRET. Undefined for the one in `dataDir`. */
  appSecret: Buffer | undefined
  /** Former secrets, which only open. */
  oldAppSecrets: readonly Buffer[]
  dataDir: string
}

const log = logger('secrets')
const LOST = 'If it is lost for good, run `tidings secrets reset` to see what is lost with it.'
const CANARY: SealedCell = { table: 'sealed_canary', column: 'sealed', rowId: 'canary' }

/**
 * Opens the secrets of an installation. On a new database, creates an APP_SECRET in DATA_DIR unless
 * one is configured, and seals a canary with it. Throws an error with a remedy if the APP_SECRET is
 * missing or does not open the canary.
 */
export async function openSecrets(sql: Queryable, source: SecretSource): Promise<Secrets> {
  const secrets = loadSecrets(source, (await findCanary(sql)) === undefined)
  // If several processes start at once, one inserts its canary, and the others must be able to open
  // it.
  await sql`
    insert into sealed_canary (sealed)
    values (${sealCanary(secrets)})
    on conflict do nothing
  `
  const problem = await findSecretsProblem(sql, source)
  if (problem !== undefined) throw new Error(problem)
  return secrets
}

/**
 * Explains why the current APP_SECRET does not open the database's secrets, with a remedy. Returns
 * undefined if it does, or if nothing is sealed yet. Changes nothing.
 */
export async function findSecretsProblem(
  sql: Queryable,
  source: SecretSource,
): Promise<string | undefined> {
  const canary = await findCanary(sql)
  if (canary === undefined) return undefined
  try {
    loadSecrets(source, false).open(canary, CANARY)
    return undefined
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) return toReason(error)
    return (
      `The database's secrets are sealed with another APP_SECRET than ${describeSource(source)}. Restore the former one. ` +
      `If it was changed on purpose, set APP_SECRET_OLD to the former one. ${LOST}`
    )
  }
}

/** Returns whether an APP_SECRET exists. */
export function hasAppSecret({ appSecret, dataDir }: SecretSource): boolean {
  return appSecret !== undefined || readSecretFile(toSecretFile(dataDir)) !== undefined
}

/** Seals a new canary with the current key. From then on, `openSecrets` requires that key. */
export async function replaceCanary(sql: Queryable, secrets: Secrets): Promise<void> {
  await sql`update sealed_canary set sealed = ${sealCanary(secrets)}`
}

/**
 * Loads the current APP_SECRET. If there is none, creates one if `mayCreate`, and throws otherwise.
 */
export function loadSecrets(
  { appSecret, oldAppSecrets, dataDir }: SecretSource,
  mayCreate: boolean,
) {
  const toKeys = (secrets: readonly Buffer[]) => [...secrets, ...oldAppSecrets].map(toAppKey)
  if (appSecret) {
    const keys = toKeys([appSecret])
    return createSecrets(() => keys)
  }
  const file = toSecretFile(dataDir)
  if (!readSecretFile(file)) {
    if (!mayCreate) {
      throw new Error(
        `APP_SECRET is not set and ${file} does not exist, but the database contains sealed secrets. ` +
          `Set APP_SECRET to the former one, or restore that file. ${LOST}`,
      )
    }
    try {
      ensureSecretFile(file)
    } catch (error) {
      throw new Error(`APP_SECRET is not set, and ${file} cannot be created: ${toReason(error)}`)
    }
    log.info('Created an APP_SECRET in {file}. Keep it with your backups.', { file })
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

function describeSource({ appSecret, dataDir }: SecretSource): string {
  return appSecret ? 'the one in APP_SECRET' : `the one in ${toSecretFile(dataDir)}`
}

const HEADER = [
  '# The APP_SECRET of Tidings. It encrypts the secrets in the database, which are lost without it. Keep a copy with your',
  '# backups, but apart from those of the database. The first line encrypts; later lines only decrypt older secrets.',
]

/** Returns the file that contains the APP_SECRET if none is configured. */
export function toSecretFile(dataDir: string): string {
  return join(dataDir, 'app-secret')
}

/**
 * Returns the secrets in the file, or undefined if it does not exist. The first one seals. Throws
 * if the file is damaged, or belongs to another user.
 */
export function readSecretFile(file: string): Buffer[] | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (isMissing(error)) return undefined
    throw new Error(
      `${file} cannot be read (${toReason(error)}). Give it to the user who runs Tidings.`,
      { cause: error },
    )
  }
  const secrets = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(parseAppSecret)
  const known = secrets.filter(secret => secret !== undefined)
  if (known.length === 0 || known.length < secrets.length) {
    throw new Error(`${file} must contain 32 bytes in base64 per line. Restore it from a backup.`)
  }
  return known
}

/**
 * Returns a function that returns the file's keys. It reads the file again once it was replaced, so
 * that running servers seal with the newest key. The keys in memory stay in use while the file is
 * missing, or cannot be read.
 */
function watchSecretFile(file: string, toKeys: (secrets: readonly Buffer[]) => AppKey[]) {
  let keys: AppKey[] = []
  let seen = ''
  let reported = ''
  return (): readonly AppKey[] => {
    try {
      const found = identify(file)
      const secrets = found === seen ? undefined : readSecretFile(file)
      if (secrets) {
        keys = toKeys(secrets)
        seen = found
      }
      reported = ''
    } catch (error) {
      if (keys.length === 0) throw error
      const reason = toReason(error)
      if (reason !== reported) {
        log.error('The APP_SECRET was replaced, and the keys in memory stay in use: {reason}', {
          reason,
        })
      }
      reported = reason
    }
    return keys
  }
}

/** Returns a text that changes when the file is replaced. Empty if it does not exist. */
function identify(file: string): string {
  try {
    const { ino, mtimeMs } = statSync(file)
    return `${ino} ${mtimeMs}`
  } catch (error) {
    if (isMissing(error)) return ''
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
}

/** Creates the file with a random secret, unless another process has created it meanwhile. */
function ensureSecretFile(file: string): void {
  const draft = writeDraft(file, [randomBytes(32)])
  try {
    // Unlike a rename, a link fails if the file exists.
    linkSync(draft, file)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
  syncFolder(dirname(file))
}

/** Replaces the secrets in the file atomically. They are on disk when it returns. */
export function replaceSecretFile(file: string, secrets: readonly Buffer[]): void {
  const draft = writeDraft(file, secrets)
  renameSync(draft, file)
  // The database commits texts that only the new key opens.
  syncFolder(dirname(file))
}

/** Writes a file beside `file`. It belongs to the owner of that file, or else of its folder. */
function writeDraft(file: string, secrets: readonly Buffer[]): string {
  ensureFolder(dirname(file))
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const lines = [...HEADER, ...secrets.map(secret => secret.toString('base64')), '']
  const fd = openSync(draft, 'wx', 0o600)
  try {
    makePrivate(fd, findOwner(file, dirname(file)))
    writeFileSync(fd, lines.join('\n'))
    fsyncSync(fd)
  } catch (error) {
    rmSync(draft)
    throw error
  } finally {
    closeSync(fd)
  }
  return draft
}
