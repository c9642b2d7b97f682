import { createCipheriv, createDecipheriv, randomBytes, hkdfSync } from 'node:crypto'

/** The cell of a sealed text. It opens in no other place. */
export interface SealedCell {
  table: string
  column: string
  rowId: string
}

/** Seals texts for the database, and opens them again. */
export interface Secrets {
  /** `v1.<key>.<nonce>.<ciphertext and tag>`, for this place alone. */
  seal(text: string, place: SealedCell): string
  /** Throws `UnreadableSecret` for a changed text, a text from another place, or a missing key. */
  open(sealed: string, place: SealedCell): string
  /** A key for another purpose than sealing. */
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
  form: 'This is no sealed text',
  key: 'This was sealed with another APP_SECRET',
  content: 'This was sealed elsewhere, or changed since',
} as const
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SHAPE = /^v1\.([\w-]{8})\.([\w-]{16})\.([\w-]{22,})$/

/** Seals with AES-256-GCM under the first of the keys of the moment, and opens with any of them. */
export function createSecrets(getKeys: () => readonly AppKey[]): Secrets {
  function current(): AppKey {
    const [key] = getKeys()
    if (!key) throw new Error('There is no APP_SECRET')
    return key
  }

  return {
    seal(text, place) {
      const { id, encryption } = current()
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', encryption, nonce)
      cipher.setAAD(toContext(place))
      const content = Buffer.concat([
        cipher.update(text, 'utf8'),
        cipher.final(),
        cipher.getAuthTag(),
      ])
      return `v1.${id}.${nonce.toString('base64url')}.${content.toString('base64url')}`
    },
    open(sealed, place) {
      const [, id, nonce, content] = SHAPE.exec(sealed) ?? []
      if (id === undefined || nonce === undefined || content === undefined) {
        throw new UnreadableSecret('form', place)
      }
      const key = getKeys().find(known => known.id === id)
      if (!key) throw new UnreadableSecret('key', place)
      const bytes = Buffer.from(content, 'base64url')
      const options = { authTagLength: TAG_BYTES }
      const iv = Buffer.from(nonce, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key.encryption, iv, options)
      decipher.setAAD(toContext(place))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        const text = [decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]
        return Buffer.concat(text).toString('utf8')
      } catch {
        throw new UnreadableSecret('content', place)
      }
    },
    derive: purpose => current().derive(purpose),
    get keyId() {
      return current().id
    },
  }
}

function toContext({ table, column, rowId }: SealedCell): Buffer {
  return Buffer.from(`${table}|${column}|${rowId}`)
}

/** The keys derived from an APP_SECRET, which itself encrypts nothing. */
export interface AppKey {
  /** Names the key beside what it has encrypted. */
  id: string
  encryption: Buffer
  /** A key for another purpose. */
  derive(purpose: string): Buffer
}

const BYTES = 32

export function toAppKey(secret: Buffer): AppKey {
  const derive = (purpose: string, bytes = BYTES) =>
    Buffer.from(hkdfSync('sha256', secret, '', `tidings ${purpose}`, bytes))
  return {
    id: derive('key id', 6).toString('base64url'),
    encryption: derive('encryption v1'),
    derive: purpose => derive(`derived: ${purpose}`),
  }
}
