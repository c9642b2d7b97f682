import { createCipheriv, createDecipheriv, randomBytes, hkdfSync } from 'node:crypto'
import { setNewest } from '../../base/functions.ts'

/**
 * The cell of a table that contains a sealed text. A sealed text can be opened only for its own
 * cell.
 */
export interface SealedCell {
  table: string
  column: string
  rowId: string
}

/** Encrypts (seals) texts for the database, and decrypts (opens) them. */
export interface Secrets {
  /** Returns `v1.<key id>.<nonce>.<ciphertext and tag>`, bound to the cell. */
  seal(text: string, cell: SealedCell): string
  /** Throws `UnreadableSecret` for a changed text, a text of another cell, or an unknown key. */
  open(sealed: string, cell: SealedCell): string
  /** Returns a 32-byte key for another purpose than sealing. */
  derive(purpose: string): Buffer
  /** The id of the key that seals. */
  readonly keyId: string
}

/** A sealed text that cannot be opened. */
export class UnreadableSecret extends Error {
  readonly reason: 'form' | 'key' | 'content'

  constructor(reason: UnreadableSecret['reason'], { table, column }: SealedCell) {
    super(`${MESSAGES[reason]} (${table}.${column})`)
    this.name = 'Unreadable'
    this.reason = reason
  }
}

const MESSAGES = {
  form: 'This is not a sealed text',
  key: 'This was sealed with another APP_SECRET',
  content: 'This was sealed for another cell, or was changed',
} as const
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SHAPE = /^v1\.([\w-]{8})\.([\w-]{16})\.([\w-]{22,})$/

/** Seals with AES-256-GCM and the first of the current keys. Opens with any of them. */
export function createSecrets(getKeys: () => readonly AppKey[]): Secrets {
  function current(): AppKey {
    const [key] = getKeys()
    if (!key) throw new Error('There is no APP_SECRET')
    return key
  }

  return {
    seal(text, cell) {
      const { id, encryption } = current()
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', encryption, nonce)
      cipher.setAAD(toAssociatedData(cell))
      const content = Buffer.concat([
        cipher.update(text, 'utf8'),
        cipher.final(),
        cipher.getAuthTag(),
      ])
      return `v1.${id}.${nonce.toString('base64url')}.${content.toString('base64url')}`
    },
    open(sealed, cell) {
      const [, id, nonce, content] = SHAPE.exec(sealed) ?? []
      if (id === undefined || nonce === undefined || content === undefined) {
        throw new UnreadableSecret('form', cell)
      }
      const key = getKeys().find(known => known.id === id)
      if (!key) throw new UnreadableSecret('key', cell)
      const bytes = Buffer.from(content, 'base64url')
      const options = { authTagLength: TAG_BYTES }
      const iv = Buffer.from(nonce, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key.encryption, iv, options)
      decipher.setAAD(toAssociatedData(cell))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        const text = [decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]
        return Buffer.concat(text).toString('utf8')
      } catch {
        throw new UnreadableSecret('content', cell)
      }
    },
    derive: purpose => current().derive(purpose),
    get keyId() {
      return current().id
    },
  }
}

/** How long an opened text is remembered, and how many are. */
const OPENED_MS = 60_000
const MAX_OPENED = 2_000

/**
 * Returns an `open` that remembers opened texts for a minute. A changed secret is sealed anew, so
 * its old text is never found under the new one.
 */
export function rememberOpened(secrets: Pick<Secrets, 'open'>): Secrets['open'] {
  const opened = new Map<string, { text: string; cell: SealedCell; untilMs: number }>()
  return (sealed, cell) => {
    const nowMs = performance.now()
    const known = opened.get(sealed)
    if (known && known.untilMs > nowMs && isSameCell(known.cell, cell)) return known.text
    const text = secrets.open(sealed, cell)
    setNewest(opened, sealed, { text, cell, untilMs: nowMs + OPENED_MS }, MAX_OPENED)
    return text
  }
}

function isSameCell(one: SealedCell, other: SealedCell): boolean {
  return one.rowId === other.rowId && one.column === other.column && one.table === other.table
}

function toAssociatedData({ table, column, rowId }: SealedCell): Buffer {
  return Buffer.from(`${table}|${column}|${rowId}`)
}

/** The keys that are derived from an APP_SECRET. The APP_SECRET itself encrypts nothing. */
export interface AppKey {
  /** Identifies the key in the texts that it has sealed. */
  id: string
  encryption: Buffer
  /** Returns a 32-byte key for another purpose. */
  derive(purpose: string): Buffer
}

const BYTES = 32

/** Derives the keys of an APP_SECRET with HKDF-SHA256. */
export function toAppKey(secret: Buffer): AppKey {
  const derive = (purpose: string, bytes = BYTES) =>
    Buffer.from(hkdfSync('sha256', secret, '', `tidings ${purpose}`, bytes))
  return {
    id: derive('key id', 6).toString('base64url'),
    encryption: derive('encryption v1'),
    derive: purpose => derive(`derived: ${purpose}`),
  }
}
