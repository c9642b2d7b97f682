import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { createAttestationChain, toKeyDescription } from '../certificates.ts'

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_CREDENTIAL = 0x40
/** The algorithm as a COSE number. */
const ES256 = -7

/** The formats of WebAuthn, and one that nobody knows. */
export const ATTESTATION_FORMATS = [
  'none',
  'packed',
  'tpm',
  'android-key',
  'android-safetynet',
  'fido-u2f',
  'apple',
  'compound',
  'unknown',
] as const

/** Deviations of a signature from the request of the server. */
interface Oddities {
  origin?: string
  rpId?: string
  challenge?: string
  type?: string
  isVerified?: boolean
  counter?: number
  /** Base64url. */
  userHandle?: string
  /** Adds a byte to the signed data after the signature is made. */
  isForged?: boolean
  /** Replaces the public key of a new passkey, in COSE form. */
  publicKey?: Buffer
  /** The attestation of a new passkey. */
  attestation?: { format: string; crlUrl: string }
}

type Cbor = string | number | Buffer | Cbor[] | Map<string, Cbor>

/** A software authenticator with one passkey, for the API without a browser. */
export interface Authenticator {
  /** The credential id in base64url. */
  readonly id: string
  /** The public key in COSE form. */
  readonly publicKey: Buffer
  /** Returns the response to the options of a new passkey, as `PublicKeyCredential.toJSON`. */
  create(options: any, oddities?: Oddities): object
  /** Returns the response to the options of a sign-in. Each signature counts. */
  get(options: any, oddities?: Oddities): object
}

/** Creates an authenticator in a browser that shows the page at `origin`. */
export function createAuthenticator(origin: string): Authenticator {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const credentialId = randomBytes(32)
  const id = credentialId.toString('base64url')
  let signatures = 0

  function toAuthenticatorData(rpId: string, flags: number, odd: Oddities): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(odd.counter ?? signatures)
    const verified = odd.isVerified === false ? 0 : USER_VERIFIED
    return Buffer.concat([
      sha256(odd.rpId ?? rpId),
      Buffer.from([USER_PRESENT | verified | flags]),
      counter,
    ])
  }

  function toClientData(type: string, options: any, odd: Oddities): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: odd.type ?? type,
        challenge: odd.challenge ?? options.challenge,
        origin: odd.origin ?? origin,
        crossOrigin: false,
      }),
    )
  }

  function toAttestationObject(data: Buffer, clientData: Buffer, odd: Oddities): Buffer {
    const { format = 'none', crlUrl = '' } = odd.attestation ?? {}
    return toCbor(
      new Map<string, Cbor>([
        ['fmt', format],
        ['attStmt', format === 'none' ? new Map() : toStatement(data, clientData, crlUrl)],
        ['authData', data],
      ]),
    )
  }

  /** A statement with the fields of every format. As `android-key` it is valid. */
  function toStatement(data: Buffer, clientData: Buffer, crlUrl: string): Map<string, Cbor> {
    const challenge = sha256(clientData)
    const chain = createAttestationChain(publicKey, {
      crlUrl,
      extensions: { '1.3.6.1.4.1.11129.2.1.17': toKeyDescription(challenge) },
    })
    const header = { alg: 'ES256', x5c: chain.map(der => der.toString('base64')) }
    const token = [JSON.stringify(header), '{}', ''].map(part =>
      Buffer.from(part).toString('base64url'),
    )
    return new Map<string, Cbor>([
      ['alg', ES256],
      ['sig', sign('sha256', Buffer.concat([data, challenge]), privateKey)],
      ['x5c', chain],
      ['ver', '2.0'],
      ['response', Buffer.from(token.join('.'))],
      ['pubArea', Buffer.alloc(64)],
      ['certInfo', Buffer.alloc(64)],
    ])
  }

  return {
    id,
    publicKey: toCoseKey(publicKey),
    create(options, odd = {}) {
      const length = Buffer.alloc(2)
      length.writeUInt16BE(credentialId.length)
      const data = Buffer.concat([
        toAuthenticatorData(options.rp.id, HAS_CREDENTIAL, odd),
        Buffer.alloc(16),
        length,
        credentialId,
        odd.publicKey ?? toCoseKey(publicKey),
      ])
      const clientData = toClientData('webauthn.create', options, odd)
      return {
        id,
        rawId: id,
        type: 'public-key',
        response: {
          clientDataJSON: clientData.toString('base64url'),
          attestationObject: toAttestationObject(data, clientData, odd).toString('base64url'),
          transports: ['internal'],
        },
      }
    },
    get(options, odd = {}) {
      signatures++
      const data = toAuthenticatorData(options.rpId, 0, odd)
      const clientData = toClientData('webauthn.get', options, odd)
      const signature = sign('sha256', Buffer.concat([data, sha256(clientData)]), privateKey)
      if (odd.isForged) data.writeUInt32BE(signatures + 1000, 33)
      return {
        id,
        rawId: id,
        type: 'public-key',
        response: {
          clientDataJSON: clientData.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: signature.toString('base64url'),
          userHandle: odd.userHandle ?? null,
        },
      }
    },
  }
}

/** Encodes a value in CBOR (RFC 8949). */
function toCbor(value: Cbor): Buffer {
  if (typeof value === 'number') return toHead(value < 0 ? 1 : 0, value < 0 ? -1 - value : value)
  if (typeof value === 'string') {
    return Buffer.concat([toHead(3, Buffer.byteLength(value)), Buffer.from(value)])
  }
  if (Buffer.isBuffer(value)) return Buffer.concat([toHead(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([toHead(4, value.length), ...value.map(toCbor)])
  return Buffer.concat([toHead(5, value.size), ...[...value].flat().map(toCbor)])
}

function toHead(kind: number, argument: number): Buffer {
  const type = kind << 5
  if (argument < 24) return Buffer.from([type | argument])
  if (argument < 0x100) return Buffer.from([type | 24, argument])
  return Buffer.from([type | 25, argument >> 8, argument & 0xff])
}

/** A P-256 key in COSE form: kind EC2, algorithm ES256. */
function toCoseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  return Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]),
    Buffer.from(x, 'base64url'),
    Buffer.from([0x22, 0x58, 0x20]),
    Buffer.from(y, 'base64url'),
  ])
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}
