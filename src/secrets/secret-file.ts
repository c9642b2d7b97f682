import { randomBytes } from 'node:crypto'
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
import { parseAppSecret } from '../config/app-secret.ts'
import type { AppKey } from './app-key.ts'

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

/** The keys of the secrets in the file, read anew whenever it was replaced: a running server seals with the newest. */
export function watchSecretFile(file: string, toKeys: (secrets: readonly Buffer[]) => AppKey[]) {
  let keys: AppKey[] = []
  let seen = ''
  return (): readonly AppKey[] => {
    const { ino = 0, mtimeMs = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {}
    const found = `${ino} ${mtimeMs}`
    // One that is gone was good enough until now.
    const secrets = found === seen ? undefined : readSecretFile(file)
    if (secrets) {
      keys = toKeys(secrets)
      seen = found
    }
    return keys
  }
}

/** Makes the file, with a secret of its own, unless another process has done so meanwhile. */
export function ensureSecretFile(file: string): void {
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

/** Puts these secrets in place of those in the file, at once. */
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
