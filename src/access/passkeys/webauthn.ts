import { isIP } from 'node:net'
import type { WebAuthnCredential } from '@simplewebauthn/server'
import { Fault, toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import type { Site } from '../../http/site.ts'
import type { Assertion, NewCredential } from './schema.ts'

const log = logger('passkeys')

/** The signature algorithms that are accepted: Ed25519, ES256 and RS256, as COSE numbers. */
export const ALGORITHMS = [-8, -7, -257]

/** Loads the library on first use, because that takes as long as the rest of the server's start. */
async function loadLibrary() {
  // A dependency of the library needs it first. The executable does not keep the order of imports.
  await import('reflect-metadata')
  const helpers = await import('@simplewebauthn/server/helpers')
  const { decodeAttestationObject, isoCBOR, verifySignature } = helpers
  const server = await import('@simplewebauthn/server')
  return { ...server, decodeAttestationObject, isoCBOR, verifySignature }
}

type Library = Awaited<ReturnType<typeof loadLibrary>>
type CBORType = Parameters<Library['isoCBOR']['encode']>[0]

/** The longest public key, in COSE form: RSA with 8,192 bits. */
const MAX_KEY_BYTES = 1_100
/** The shortest signature that an ECDSA key can check. It fits no data. */
const WRONG_SIGNATURE = Uint8Array.from(Buffer.from('3006020101020101', 'hex'))

/** This server as WebAuthn names it. Passkeys belong to the id, and work on the origin alone. */
export interface RelyingParty {
  id: string
  origin: string
}

/**
 * Returns the relying party of a site. Throws `conflict` if the address is an IP address or is not
 * secure, because browsers have no passkeys there.
 */
export function toRelyingParty({ url }: Pick<Site, 'url'>): RelyingParty {
  const { hostname, protocol, origin } = new URL(url)
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) > 0
  if (!isAddress && (protocol === 'https:' || isLocal)) return { id: hostname, origin }
  throw new Fault(
    'conflict',
    `Passkeys need a name and https, and this server is ${origin}. Set BASE_URL to such an address.`,
  )
}

/** The parts of a credential that are stored. */
export interface RegisteredCredential {
  /** Base64url. */
  id: string
  /** In COSE form. */
  publicKey: Uint8Array
  counter: number
  transports: string[]
  isSynced: boolean
}

/** Returns the challenge that a response claims to answer. It is not verified. */
export function readChallenge({ response }: Assertion | NewCredential): string {
  try {
    const text = Buffer.from(response.clientDataJSON, 'base64url').toString('utf8')
    const { challenge } = JSON.parse(text) as { challenge?: unknown }
    if (typeof challenge === 'string') return challenge
  } catch {
    // Reported below, like data without a challenge.
  }
  throw refused()
}

/**
 * Verifies a new credential: its origin, its relying party, that the person was verified, and that
 * its public key can verify signatures. Throws `conflict` otherwise. The caller has checked
 * `challenge`.
 *
 * The server requests no attestation, and drops the statement of a client that sends one. The
 * library would fetch URLs from the certificates in it, which are the caller's.
 */
export async function verifyNewCredential(
  { id: rpId, origin }: RelyingParty,
  credential: NewCredential,
  challenge: string,
): Promise<RegisteredCredential> {
  const library = await loadLibrary()
  const { clientDataJSON, attestationObject } = credential.response
  const { registrationInfo } = await refuseErrors(async () =>
    library.verifyRegistrationResponse({
      response: {
        ...credential,
        response: {
          clientDataJSON,
          attestationObject: dropStatement(library, attestationObject),
        },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      supportedAlgorithmIDs: ALGORITHMS,
      requireUserVerification: true,
    }),
  )
  if (!registrationInfo) throw refused()
  const { id, publicKey, counter } = registrationInfo.credential
  if (publicKey.length > MAX_KEY_BYTES) throw refused()
  // The library stores any key. Throws for one that no signature could ever fit.
  await refuseErrors(() =>
    library.verifySignature({
      signature: WRONG_SIGNATURE,
      data: WRONG_SIGNATURE,
      credentialPublicKey: publicKey,
    }),
  )
  return {
    id,
    publicKey,
    counter,
    transports: credential.response.transports ?? [],
    isSynced: registrationInfo.credentialBackedUp,
  }
}

/** Returns an attestation object of the format `none` with the same authenticator data. */
function dropStatement({ decodeAttestationObject, isoCBOR }: Library, base64url: string): string {
  const sent = decodeAttestationObject(new Uint8Array(Buffer.from(base64url, 'base64url')))
  const kept = new Map<string, CBORType>([
    ['fmt', 'none'],
    ['attStmt', new Map<string, CBORType>()],
    ['authData', sent.get('authData')],
  ])
  return Buffer.from(isoCBOR.encode(kept)).toString('base64url')
}

/**
 * Verifies the signature of a stored credential. Throws `conflict` if it is wrong. Returns the
 * authenticator's counter, which the caller compares with the stored one.
 */
export async function verifyAssertion(
  { id: rpId, origin }: RelyingParty,
  assertion: Assertion,
  stored: { credentialId: string; publicKey: Uint8Array; challenge: string },
): Promise<{ counter: number; isSynced: boolean }> {
  const { clientDataJSON, authenticatorData, signature } = assertion.response
  const credential: WebAuthnCredential = {
    id: stored.credentialId,
    publicKey: Uint8Array.from(stored.publicKey),
    // The library compares counters before it verifies the signature. A forged counter must not
    // disable a passkey, so that comparison is left out here.
    counter: -1,
  }
  const library = await loadLibrary()
  const { verified, authenticationInfo } = await refuseErrors(() =>
    library.verifyAuthenticationResponse({
      response: {
        ...assertion,
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: stored.challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      credential,
      requireUserVerification: true,
    }),
  )
  if (!verified) throw refused()
  return { counter: authenticationInfo.newCounter, isSynced: authenticationInfo.credentialBackedUp }
}

/** Converts the errors of the library, which describe the response, to one for the caller. */
async function refuseErrors<Result>(verify: () => Promise<Result>): Promise<Result> {
  try {
    return await verify()
  } catch (error) {
    log.debug('A passkey was refused: {reason}', { reason: toReason(error) })
    throw refused()
  }
}

function refused(): Fault {
  return new Fault('conflict', 'The response of the passkey is not valid. Try again.')
}
