import { createHmac, timingSafeEqual } from 'node:crypto'
import type { PresetName } from './schema.ts'

const TOLERANCE_S = 5 * 60

/** How a program signs its requests. */
interface Scheme {
  /** The header that has the signature. */
  header: string
  /** Matches a secret of the program. */
  secret: RegExp
  /** Returns the time of the request, if the program signs it, with the content and the key. */
  read(headers: Headers, secret: string): { at?: string | undefined; before: string; key: Buffer }
  /** Lists the signatures in the header. */
  list(header: string): string[]
  encoding: 'hex' | 'base64'
}

const STRIPE_TIME = /(?:^|,)\s*t=(\d{1,12})(?:,|$)/

/** The programs that can sign. `generic` follows Standard Webhooks. */
export const SCHEMES: Partial<Record<PresetName, Scheme>> = {
  github: {
    header: 'x-hub-signature-256',
    secret: /^[^]+$/,
    read: (_, secret) => ({ before: '', key: Buffer.from(secret) }),
    list: header => (header.startsWith('sha256=') ? [header.slice(7)] : []),
    encoding: 'hex',
  },
  stripe: {
    header: 'stripe-signature',
    secret: /^whsec_\S+$/,
    read(headers, secret) {
      const [, at = ''] = STRIPE_TIME.exec(headers.get('stripe-signature') ?? '') ?? []
      return { at, before: `${at}.`, key: Buffer.from(secret) }
    },
    list: header =>
      header.split(',').flatMap(part => (/^\s*v1=/.test(part) ? [part.trim().slice(3)] : [])),
    encoding: 'hex',
  },
  generic: {
    header: 'webhook-signature',
    secret: /^(whsec_)?[\w+/-]{32,}={0,2}$/,
    read(headers, secret) {
      const at = headers.get('webhook-timestamp') ?? ''
      const before = `${headers.get('webhook-id') ?? ''}.${at}.`
      return { at, before, key: Buffer.from(secret.replace(/^whsec_/, ''), 'base64') }
    },
    list: header =>
      header.split(' ').flatMap(part => (part.startsWith('v1,') ? [part.slice(3)] : [])),
    encoding: 'base64',
  },
}

/** Returns why a request is not authentic, as a sentence; undefined if it is. */
export function findSignatureProblem(
  { header, read, list, encoding }: Scheme,
  { headers, bytes }: { headers: Headers; bytes: Uint8Array },
  { secret, nowMs }: { secret: string; nowMs: number },
): string | undefined {
  const given = list(headers.get(header) ?? '')
  if (given.length === 0) return `The header ${header} has no signature`
  const { at, before, key } = read(headers, secret)
  const expected = createHmac('sha256', key).update(before).update(bytes).digest()
  const isOneOf = given.map(text => {
    const one = Buffer.from(text, encoding)
    return one.length === expected.length && timingSafeEqual(one, expected)
  })
  if (!isOneOf.includes(true)) return `The signature in ${header} does not match the secret`
  if (at === undefined) return undefined
  return Math.abs(nowMs / 1000 - Number(at)) <= TOLERANCE_S
    ? undefined
    : 'The signature is over 5 minutes old, or from the future. Check the clocks'
}
