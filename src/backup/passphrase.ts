import { randomBytes, scrypt } from 'node:crypto'
import {
  toAppKey,
  type AppKey,
  createSecrets,
  UnreadableSecret,
  type SealedCell,
  type Secrets,
} from '../secrets/secrets.ts'
import type { BackupHeader } from './format.ts'

export const MIN_PASSPHRASE = 12

type Scrypt = BackupHeader['scrypt']

/** The keys that a passphrase gives: for the secrets of one backup, and for its seal. */
export interface BackupKeys {
  secrets: Secrets
  macKey: Buffer
}

const CHECK: SealedCell = { table: 'backup', column: 'check', rowId: 'check' }
const SEAL = 'seal of a backup'

/** Makes the lock of a new backup, and the fields of its head. */
export async function createBackupKeys(
  passphrase: string,
): Promise<BackupKeys & Pick<BackupHeader, 'scrypt' | 'check'>> {
  // The parameters that OWASP recommends: 128 MB and about half a second.
  const parameters = { n: 2 ** 17, r: 8, p: 1, salt: randomBytes(16).toString('base64url') }
  const lock = await deriveKeys(passphrase, parameters)
  return { ...lock, scrypt: parameters, check: lock.secrets.seal('', CHECK) }
}

/** Opens the lock of a backup. Throws with a sentence for people when the passphrase is wrong. */
export async function openBackupKeys(
  passphrase: string,
  { scrypt: parameters, check }: Pick<BackupHeader, 'scrypt' | 'check'>,
): Promise<BackupKeys> {
  const lock = await deriveKeys(passphrase, parameters)
  try {
    lock.secrets.open(check, CHECK)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    throw new Error(
      'The passphrase is not that of this backup. Nothing was restored: set BACKUP_PASSPHRASE to the one it was made with.',
    )
  }
  return lock
}

async function deriveKeys(passphrase: string, parameters: Scrypt): Promise<BackupKeys> {
  const key = await deriveKey(passphrase, parameters)
  return { secrets: createSecrets(() => [key]), macKey: key.derive(SEAL) }
}

function deriveKey(passphrase: string, { n, r, p, salt }: Scrypt): Promise<AppKey> {
  return new Promise((resolve, reject) => {
    // Keyboards compose letters differently; the normal form is the same.
    scrypt(
      passphrase.normalize('NFKC'),
      Buffer.from(salt, 'base64url'),
      32,
      { N: n, r, p, maxmem: 2 * 128 * n * r },
      (error, bytes) => (error ? reject(error) : resolve(toAppKey(bytes))),
    )
  })
}
