import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_CREDENTIAL = 0x40

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
}

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
        toCoseKey(publicKey),
      ])
      const clientData = toClientData('webauthn.create', options, odd)
      return {
        id,
        rawId: id,
        type: 'public-key',
        response: {
          clientDataJSON: clientData.toString('base64url'),
          attestationObject: toAttestation(data).toString('base64url'),
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

/** The attestation object in CBOR, without an attestation. */
function toAttestation(data: Buffer): Buffer {
  const length = Buffer.from([0x58, data.length])
  return Buffer.concat([
    Buffer.from([0xa3]),
    toCborText('fmt'),
    toCborText('none'),
    toCborText('attStmt'),
    Buffer.from([0xa0]),
    toCborText('authData'),
    length,
    data,
  ])
}

function toCborText(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + text.length]), Buffer.from(text)])
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
