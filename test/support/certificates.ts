import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { isIP } from 'node:net'

/** A key and a certificate, as PEM. */
export interface Certificate {
  key: string
  cert: string
}

export interface Authority {
  /** The authority that a client must trust. */
  ca: string
  /** A certificate for these names and addresses; `*.many.test` stands for all names below it. */
  issue(
    names: readonly string[],
    options?: { isExpired?: boolean; isClient?: boolean },
  ): Certificate
}

const DAY_MS = 86_400_000
const ECDSA_SHA256 = '1.2.840.10045.4.3.2'

/** An authority that no client trusts by default. */
export function createAuthority(): Authority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = `Test authority ${randomBytes(4).toString('hex')}`
  const ca = toCertificate({
    issuer: name,
    subject: name,
    publicKey,
    signer: privateKey,
    extensions: [
      extension('2.5.29.19', sequence(boolean(true)), true),
      extension('2.5.29.15', bits(Buffer.from([0x06]), 1), true),
    ],
    fromMs: Date.now() - DAY_MS,
    toMs: Date.now() + 30 * DAY_MS,
  })
  return {
    ca,
    issue(names, { isExpired = false, isClient = false } = {}) {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const cert = toCertificate({
        issuer: name,
        subject: names[0] ?? 'nobody',
        publicKey: own.publicKey,
        signer: privateKey,
        extensions: [
          extension('2.5.29.17', sequence(...names.map(toAlternative))),
          extension(
            '2.5.29.37',
            sequence(oid(isClient ? '1.3.6.1.5.5.7.3.2' : '1.3.6.1.5.5.7.3.1')),
          ),
        ],
        fromMs: Date.now() - 10 * DAY_MS,
        toMs: Date.now() + (isExpired ? -DAY_MS : 10 * DAY_MS),
      })
      return { key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
    },
  }
}

/** Returns the DER of a certificate with `publicKey` and that of the authority that issued it. */
export function createAttestationChain(
  publicKey: KeyObject,
  { crlUrl, extensions }: { crlUrl: string; extensions: Readonly<Record<string, Buffer>> },
): Buffer[] {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = `Test authority ${randomBytes(4).toString('hex')}`
  const validity = { fromMs: Date.now() - DAY_MS, toMs: Date.now() + DAY_MS }
  const uri = tagged(0x86, Buffer.from(crlUrl))
  const shared = { issuer: name, signer: root.privateKey, ...validity }
  const chain = [
    toCertificate({
      ...shared,
      subject: 'A device',
      publicKey,
      extensions: [
        extension('2.5.29.31', sequence(sequence(tagged(0xa0, tagged(0xa0, uri))))),
        ...Object.entries(extensions).map(([id, value]) => extension(id, value)),
      ],
    }),
    toCertificate({
      ...shared,
      subject: name,
      publicKey: root.publicKey,
      extensions: [extension('2.5.29.19', sequence(boolean(true)), true)],
    }),
  ]
  return chain.map(pem => Buffer.from(pem.replaceAll(/-----.*-----|\n/g, ''), 'base64'))
}

/** Returns the extension that says which challenge an Android device has signed. */
export function toKeyDescription(challenge: Buffer): Buffer {
  const version = integer(Buffer.from([4]))
  const level = tagged(0x0a, Buffer.from([1]))
  const octets = (bytes: Buffer) => tagged(0x04, bytes)
  return sequence(
    version,
    level,
    version,
    level,
    octets(challenge),
    octets(Buffer.alloc(0)),
    sequence(),
    sequence(),
  )
}

interface Content {
  issuer: string
  subject: string
  publicKey: KeyObject
  signer: KeyObject
  extensions: Buffer[]
  fromMs: number
  toMs: number
}

/** Encodes an X.509 version 3 certificate in DER (RFC 5280) without external programs. */
function toCertificate(content: Content): string {
  const algorithm = sequence(oid(ECDSA_SHA256))
  const signed = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    algorithm,
    toName(content.issuer),
    sequence(time(content.fromMs), time(content.toMs)),
    toName(content.subject),
    content.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...content.extensions)),
  )
  const signature = sign('sha256', signed, content.signer)
  const der = sequence(signed, algorithm, bits(signature, 0))
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content])
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts)
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]))
}

function bits(bytes: Buffer, unused: number): Buffer {
  return tagged(0x03, Buffer.from([unused]), bytes)
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const digits = [part & 0x7f]
    for (let more = part >> 7; more > 0; more >>= 7) digits.unshift((more & 0x7f) | 0x80)
    bytes.push(...digits)
  }
  return tagged(0x06, Buffer.from(bytes))
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return tagged(0x17, Buffer.from(text.slice(2)))
}

function toName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(name)))))
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [boolean(true)] : []), tagged(0x04, value))
}

function toAlternative(name: string): Buffer {
  return isIP(name) === 4
    ? tagged(0x87, Buffer.from(name.split('.').map(Number)))
    : tagged(0x82, Buffer.from(name))
}
