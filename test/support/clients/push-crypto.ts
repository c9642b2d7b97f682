import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  hkdfSync,
  randomBytes,
  verify,
} from 'node:crypto'

/** The secrets that a browser keeps for a subscription, in base64url. */
export interface BrowserKeys {
  privateKey: string
  publicKey: string
  auth: string
}

/** Returns new secrets, as a browser makes them when it subscribes. */
export function newBrowserKeys(): BrowserKeys {
  const ecdh = createECDH('prime256v1')
  return {
    publicKey: ecdh.generateKeys().toString('base64url'),
    privateKey: ecdh.getPrivateKey().toString('base64url'),
    auth: randomBytes(16).toString('base64url'),
  }
}

/** The intermediate values of RFC 8291 from the keys to the content, in base64url. */
export interface Intermediates {
  ecdh: string
  ikm: string
  cek: string
  nonce: string
}

/** Returns the header of RFC 8188 and the records. */
export function parseBody(body: Buffer) {
  const idLength = body.readUInt8(20)
  return {
    salt: body.subarray(0, 16),
    recordSize: body.readUInt32BE(16),
    keyId: body.subarray(21, 21 + idLength),
    content: body.subarray(21 + idLength),
  }
}

/** Decrypts aes128gcm (RFC 8188) with its input keying material. */
export function decryptRecords(
  body: Buffer,
  ikm: Buffer,
): { text: string; records: number; cek: Buffer; nonce: Buffer } {
  const { salt, recordSize, content } = parseBody(body)
  const derive = (info: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', ikm, salt, `Content-Encoding: ${info}\0`, bytes))
  const [cek, nonce] = [derive('aes128gcm', 16), derive('nonce', 12)]
  const parts: Buffer[] = []
  let records = 0
  for (let at = 0; at < content.length; at += recordSize) {
    const record = content.subarray(at, at + recordSize)
    const iv = Buffer.from(nonce)
    iv.writeUInt32BE((iv.readUInt32BE(8) ^ records) >>> 0, 8)
    const decipher = createDecipheriv('aes-128-gcm', cek, iv)
    decipher.setAuthTag(record.subarray(-16))
    const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()])
    const end = padded.findLastIndex(byte => byte !== 0)
    const isLast = at + recordSize >= content.length
    if (padded[end] !== (isLast ? 2 : 1)) throw new Error('A record has the wrong delimiter')
    parts.push(padded.subarray(0, end))
    records++
  }
  return { text: Buffer.concat(parts).toString(), records, cek, nonce }
}

/** Decrypts a push message like a browser (RFC 8291). */
export function decryptPush(
  body: Buffer,
  { privateKey, publicKey, auth }: BrowserKeys,
): { text: string; records: number; intermediates: Intermediates } {
  const { keyId } = parseBody(body)
  const browser = createECDH('prime256v1')
  browser.setPrivateKey(toBytes(privateKey))
  const ecdh = browser.computeSecret(keyId)
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), toBytes(publicKey), keyId])
  const ikm = Buffer.from(hkdfSync('sha256', ecdh, toBytes(auth), info, 32))
  const { text, records, cek, nonce } = decryptRecords(body, ikm)
  const [a, b, c, d] = [ecdh, ikm, cek, nonce].map(bytes => bytes.toString('base64url'))
  return { text, records, intermediates: { ecdh: a!, ikm: b!, cek: c!, nonce: d! } }
}

export interface Claims {
  aud: string
  exp: number
  sub: string
}

/** Returns the claims and key of an Authorization header (RFC 8292). */
export function verifyVapid(authorization: string): { claims: Claims; key: string } {
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(authorization) ?? []
  const [header = '', payload = '', signature = ''] = token.split('.')
  const { alg } = JSON.parse(toBytes(header).toString()) as { alg: string }
  if (alg !== 'ES256') throw new Error(`The algorithm is ${alg}`)
  const point = toBytes(key)
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
  const signed = Buffer.from(`${header}.${payload}`)
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' as const }
  if (!verify('sha256', signed, options, toBytes(signature))) {
    throw new Error('The signature is not of this key')
  }
  return { claims: JSON.parse(toBytes(payload).toString()) as Claims, key }
}

export function toBytes(base64url: string): Buffer {
  return Buffer.from(base64url, 'base64url')
}
