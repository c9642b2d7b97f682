import { randomBytes } from 'node:crypto'
import type { Queryable } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { logger } from '../log.ts'
import {
  toAppKey,
  createSecrets,
  UnreadableSecret,
  type SealedCell,
  type Secrets,
  type AppKey,
} from './secrets.ts'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parseAppSecret } from '../config/values.ts'

/** The APP_SECRET of an installation, or the folder that keeps it. */
export interface SecretSource {
  /** The configured one; undefined for the one kept in `dataDir`. */
  appSecret: Buffer | undefined
  /** Former ones, which only open. */
  oldAppSecrets: readonly Buffer[]
  dataDir: string
}

const log = logger('secrets')
const LOST = 'Where it is lost for good, `tidings secrets reset` says what is lost with it.'
const CANARY: SealedCell = { table: 'sealed_canary', column: 'sealed', rowId: 'canary' }

/**
 * Opens the secrets of an installation. The first program on a new database binds it to its APP_SECRET, which is made and
 * kept in DATA_DIR unless one is configured. Throws with a remedy when the secret is another one, or missing.
 */
export async function openSecrets(sql: Queryable, source: SecretSource): Promise<Secrets> {
  const secrets = loadSecrets(source, (await findCanary(sql)) === undefined)
  // Of several first starts, one seals the canary; the others must open it.
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
 * Explains why the current APP_SECRET does not open the database's secrets, with a remedy; undefined when it does, or when
 * nothing was sealed yet. Changes nothing.
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
      `The database's secrets are sealed with another APP_SECRET than ${toName(source)}. Set it to what it was; ` +
      `if it was changed on purpose, set APP_SECRET_OLD to the former one. ${LOST}`
    )
  }
}

/** Whether there is an APP_SECRET already. */
export function hasAppSecret({ appSecret, dataDir }: SecretSource): boolean {
  return appSecret !== undefined || readSecretFile(toSecretFile(dataDir)) !== undefined
}

/** Seals the canary with the current key: only that key opens the installation from now on. */
export async function replaceCanary(sql: Queryable, secrets: Secrets): Promise<void> {
  await sql`update sealed_canary set sealed = ${sealCanary(secrets)}`
}

/** Finds the current APP_SECRET. Makes one when there is none and `mayMake`, else throws. */
export function loadSecrets({ appSecret, oldAppSecrets, dataDir }: SecretSource, mayMake: boolean) {
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

const HEADER = [
  '# What Tidings keeps secret in its database is sealed with this: without it, it is lost. Keep it with your backups,',
  '# and apart from those of the database. The first line seals; those after it only open what is older.',
]

/** The file in DATA_DIR that keeps the APP_SECRET where none is configured. */
export function toSecretFile(dataDir: string): string {
  return join(dataDir, 'app-secret')
}

/** The secrets in the file, the one that seals first; undefined when there is no file. Throws for a damaged one. */
export function readSecretFile(file: string): Buffer[] | undefined {
  if (!existsSync(file)) return undefined
  const secrets = readFileSync(file, 'utf8')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(parseAppSecret)
  const known = secrets.filter(secret => secret !== undefined)
  if (known.length === 0 || known.length < secrets.length) {
    throw new Error(`${file} must hold 32 bytes in base64 a line: restore it from a backup`)
  }
  return known
}

/** Returns a function for the file's keys, which reads a replaced file anew: running servers seal with the newest. */
function watchSecretFile(file: string, toKeys: (secrets: readonly Buffer[]) => AppKey[]) {
  let keys: AppKey[] = []
  let seen = ''
  return (): readonly AppKey[] => {
    const { ino = 0, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
    const found = `${ino} ${mtimeMs}`
    // When the file is gone, the keys in memory stay in use.
    const secrets = found === seen ? undefined : readSecretFile(file)
    if (secrets) {
      keys = toKeys(secrets)
      seen = found
    }
    return keys
  }
}

/** Makes the file with a random secret, unless another process has made it meanwhile. */
function ensureSecretFile(file: string): void {
  const draft = writeDraft(file, [randomBytes(32)])
  try {
    // Unlike a rename, a link fails where the file is there already.
    linkSync(draft, file)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
}

/** Replaces the secrets in the file atomically. */
export function replaceSecretFile(file: string, secrets: readonly Buffer[]): void {
  renameSync(writeDraft(file, secrets), file)
}

function writeDraft(file: string, secrets: readonly Buffer[]): string {
  mkdirSync(dirname(file), { recursive: true })
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  const lines = [...HEADER, ...secrets.map(secret => secret.toString('base64')), '']
  writeFileSync(draft, lines.join('\n'), { mode: 0o600, flag: 'wx', flush: true })
  chmodSync(draft, 0o600)
  return draft
}
