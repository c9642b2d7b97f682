import { randomBytes, scrypt } from 'node:crypto'
import {
  toAppKey,
  type AppKey,
  createSecrets,
  UnreadableSecret,
  type SealedCell,
  type Secrets,
} from '../../database/secrets/secrets.ts'
import type { BackupHeader } from './format.ts'

type Scrypt = BackupHeader['scrypt']

/** The work of scrypt for the key of a backup, within the limits of `BackupHeader`. */
export type ScryptCost = Omit<Scrypt, 'salt'>

/** The parameters that OWASP recommends. They take 128 MB and about half a second. */
const SCRYPT_COST: ScryptCost = { n: 2 ** 17, r: 8, p: 1 }

/** The keys of one backup, derived from its passphrase. */
export interface BackupKeys {
  /** Encrypts and decrypts the sealed columns. */
  secrets: Secrets
  macKey: Buffer
}

const CHECK: SealedCell = { table: 'backup', column: 'check', rowId: 'check' }
const MAC_PURPOSE = 'mac of a backup'

/** Derives the keys of a new backup. Returns them with the fields of its header. */
export async function createBackupKeys(
  passphrase: string,
  cost = SCRYPT_COST,
): Promise<BackupKeys & Pick<BackupHeader, 'scrypt' | 'check'>> {
  const parameters = { ...cost, salt: randomBytes(16).toString('base64url') }
  const keys = await deriveKeys(passphrase, parameters)
  return { ...keys, scrypt: parameters, check: keys.secrets.seal('', CHECK) }
}

/** Derives the keys of an existing backup. Throws when the passphrase is wrong. */
export async function openBackupKeys(
  passphrase: string,
  { scrypt: parameters, check }: Pick<BackupHeader, 'scrypt' | 'check'>,
): Promise<BackupKeys> {
  const keys = await deriveKeys(passphrase, parameters)
  try {
    keys.secrets.open(check, CHECK)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    throw new Error(
      'The passphrase is wrong. Nothing was restored. Set BACKUP_PASSPHRASE to the passphrase of this backup.',
    )
  }
  return keys
}

async function deriveKeys(passphrase: string, parameters: Scrypt): Promise<BackupKeys> {
  const key = await deriveKey(passphrase, parameters)
  return { secrets: createSecrets(() => [key]), macKey: key.derive(MAC_PURPOSE) }
}

function deriveKey(passphrase: string, { n, r, p, salt }: Scrypt): Promise<AppKey> {
  return new Promise((resolve, reject) => {
    // Keyboards compose letters differently. The normal form is always the same.
    scrypt(
      passphrase.normalize('NFKC'),
      Buffer.from(salt, 'base64url'),
      32,
      { N: n, r, p, maxmem: 2 * 128 * n * r },
      (error, bytes) => (error ? reject(error) : resolve(toAppKey(bytes))),
    )
  })
}
