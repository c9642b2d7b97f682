import { toUUID, type TypeId } from 'typeid-js'

/**
 * What an id names: organization, project, channel, event, identity, key, webhook, push subscription; a person who
 * signs in, their session, an invite, an entry of the audit log; an attempt to deliver to a webhook, a delivery, the key
 * that signs pushes.
 */
export type IdPrefix =
  | 'org'
  | 'prj'
  | 'chn'
  | 'evt'
  | 'idn'
  | 'key'
  | 'whk'
  | 'psh'
  | 'per'
  | 'ses'
  | 'inv'
  | 'aud'
  | 'att'
  | 'dlv'
  | 'vap'

/** One identifier in its two spellings: `id` for people (`evt_01k…`), `uuid` (version 7) for tables. */
export interface Id {
  id: string
  uuid: string
}

/** The nil UUID of RFC 9562. It sorts before every other UUID. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

export function newId(prefix: IdPrefix): Id {
  const uuid = newUuid()
  return { id: toId(prefix, uuid), uuid }
}

let lastMs = 0
let count = 0

/** A UUID of version 7 (RFC 9562 §6.2, method 1): ids of one process ascend, also within a millisecond. */
function newUuid(): string {
  const nowMs = Date.now()
  if (nowMs > lastMs) {
    lastMs = nowMs
    count = 0
  } else if (++count > 0xfff) {
    lastMs++
    count = 0
  }
  const time = lastMs.toString(16).padStart(12, '0')
  const place = count.toString(16).padStart(3, '0')
  // From the variant on, the bits of versions 4 and 7 mean the same.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${place}${crypto.randomUUID().slice(18)}`
}

const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz'
/** The two digits of every number of ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, n) => `${BASE32[n >> 5]}${BASE32[n & 31]}`)

/**
 * Returns the public spelling of a stored uuid: a TypeID. `fromUUID` of typeid-js returns the same
 * and takes five times as long, which each event would pay.
 */
export function toId(prefix: IdPrefix, uuid: string): string {
  const hex = uuid.replaceAll('-', '')
  // 128 bits are the last 8 of two digits, and 20 of every four.
  let digits = PAIRS[Number.parseInt(hex.slice(0, 2), 16)] ?? ''
  for (let at = 2; at < 32; at += 5) {
    const bits = Number.parseInt(hex.slice(at, at + 5), 16)
    digits += `${PAIRS[bits >> 10]}${PAIRS[bits & 1023]}`
  }
  return `${prefix}_${digits}`
}

/** The uuid inside a public id, or undefined when it is not a well-formed id of that kind. */
export function parseId(prefix: IdPrefix, id: string): string | undefined {
  if (!id.startsWith(`${prefix}_`) || id.length !== prefix.length + 27) return undefined
  try {
    return toUUID(id as TypeId<IdPrefix>)
  } catch {
    return undefined
  }
}
