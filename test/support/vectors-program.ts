import crypto, { createECDH } from 'node:crypto'
import { encryptPush } from '../../src/delivery/push/encrypt-and-send.ts'
import type { Assertion, NewCredential } from '../../src/access/passkeys/schema.ts'
import { verifyAssertion, verifyNewCredential } from '../../src/access/passkeys/webauthn.ts'
import { createVapidTokenCache } from '../../src/delivery/push/vapid.ts'
import { signMessage } from '../../src/delivery/webhooks/signing.ts'
import { findSignatureProblem } from '../../src/delivery/webhooks/signing.ts'
import { createAuthenticator } from './clients/authenticator.ts'
import { decryptPush, decryptRecords, toBytes, verifyVapid } from './clients/push-crypto.ts'
import { RFC8188, RFC8291, RFC8292, STANDARD_WEBHOOKS } from './vectors.ts'

// Prints what the server's modules compute for the official vectors on this runtime, as JSON. It is
// a separate program so that it can be compiled.
const { text, records, intermediates } = decryptPush(toBytes(RFC8291.body), RFC8291.browser)

console.log(
  JSON.stringify({
    rfc8188: RFC8188.map(({ body, ikm }) => {
      const { text, records } = decryptRecords(toBytes(body), toBytes(ikm))
      return { text, records }
    }),
    rfc8292: [`vapid t=${RFC8292.token}, k=${RFC8292.key}`, makeToken()].map(verifyVapid),
    standardWebhooks: STANDARD_WEBHOOKS.map(({ secret, id, timestamp, body, signature }) => ({
      signature: signMessage({ id, timestampMs: timestamp * 1000, body }, [secret])[
        'webhook-signature'
      ],
      isGenuine:
        findSignatureProblem(
          { id, timestamp: `${timestamp}`, body, signature },
          secret,
          timestamp * 1000,
        ) === undefined,
    })),
    passkey: await verifyPasskey(),
    // Last, because it replaces the randomness.
    rfc8291: { text, records, intermediates, encrypted: encryptAsInRfc() },
  }),
)

/** Registers a passkey and signs with it. Returns its counter. */
async function verifyPasskey(): Promise<number> {
  const site = { id: 'localhost', origin: 'http://localhost:3000' }
  const authenticator = createAuthenticator(site.origin)
  const created = authenticator.create({ rp: site, challenge: 'AAAA' }) as NewCredential
  const { publicKey } = await verifyNewCredential(site, created, 'AAAA')
  const signed = authenticator.get({ rpId: site.id, challenge: 'BBBB' }) as Assertion
  const stored = { credentialId: authenticator.id, publicKey, challenge: 'BBBB' }
  return (await verifyAssertion(site, signed, stored)).counter
}

/** Signatures are random: ours is verified like the one in the RFC. */
function makeToken(): string {
  const { aud, sub, exp } = RFC8292.claims
  const pair = { id: 'a', ...RFC8291.server }
  const nowMs = (exp - 12 * 3_600) * 1000
  return createVapidTokenCache().make(pair, { origin: aud, subject: sub, nowMs })
}

/** Our own encryption, with the random values of the RFC. */
function encryptAsInRfc(): string {
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(toBytes(RFC8291.server.privateKey))
  ecdh.generateKeys = () => ecdh.getPublicKey() as never
  Object.assign(crypto, { createECDH: () => ecdh, randomBytes: () => toBytes(RFC8291.salt) })
  const { publicKey: p256dh, auth } = RFC8291.browser
  const address = { endpoint: 'https://push.example.net/', p256dh, auth }
  const message = { payload: RFC8291.plaintext, topic: 'a', urgency: 'normal' } as const
  const { body } = encryptPush(address, message, 60)
  return Buffer.from(body).toString('base64url')
}
