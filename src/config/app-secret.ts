const BYTES = 32

/** 32 bytes in base64, URL-safe or not, or in hex; undefined for anything else. */
export function parseAppSecret(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === BYTES ? bytes : undefined
}
