import { hkdfSync } from 'node:crypto'

/** What an APP_SECRET becomes: the secret itself encrypts nothing. */
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
