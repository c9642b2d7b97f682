import { toUUID, type TypeId } from 'typeid-js'

/**
 * The kind of object that an id names. In this order: organization, project, channel, event,
 * identity, API key, webhook, push subscription, account, session, invite, reset link, audit entry,
 * attempt, delivery, VAPID key, passkey, TOTP secret, connection to a provider, management token,
 * card of insights, view, timer, silence, heartbeat, inbound hook, request to one, rule.
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
  | 'rst'
  | 'aud'
  | 'att'
  | 'dlv'
  | 'vap'
  | 'pky'
  | 'otp'
  | 'con'
  | 'tok'
  | 'crd'
  | 'viw'
  | 'tmr'
  | 'sil'
  | 'hbt'
  | 'hok'
  | 'hkr'
  | 'rul'

/**
 * One identifier in its two forms: the public `id` (`evt_01k…`), and the `uuid` (version 7) in
 * tables.
 */
export interface Id {
  id: string
  uuid: string
}

/** The source of a regular expression that matches a UUID as Postgres writes it. */
export const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
export const UUID_PATTERN = new RegExp(`^${UUID}$`)

/** The nil UUID of RFC 9562. It sorts before every other UUID. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/** Returns a new identifier. */
export function newId(prefix: IdPrefix): Id {
  const uuid = newUuid()
  return { id: toId(prefix, uuid), uuid }
}

let lastMs = 0
/** `lastMs` as the first 12 hex digits of a uuid, with a hyphen. */
let time = ''
let count = 0

/**
 * Returns a UUID of version 7 (RFC 9562 §6.2, method 1). UUIDs of one process ascend, also within a
 * millisecond.
 */
function newUuid(): string {
  const nowMs = Date.now()
  if (nowMs > lastMs) setTime(nowMs)
  else if (++count > 0xfff) setTime(lastMs + 1)
  const place = (0x7000 + count).toString(16)
  // The rest comes from a random UUID of version 4, which has the same layout from the variant on.
  return `${time}-${place}${crypto.randomUUID().slice(18)}`
}

function setTime(ms: number): void {
  lastMs = ms
  count = 0
  const digits = ms.toString(16).padStart(12, '0')
  time = `${digits.slice(0, 8)}-${digits.slice(8)}`
}

const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz'
/** The two base32 digits of each number of ten bits. */
const PAIRS = Array.from({ length: 1024 }, (_, n) => `${BASE32[n >> 5]}${BASE32[n & 31]}`)

/** The value of each hex digit, by its character code. */
const HEX_VALUES = Uint8Array.from({ length: 103 }, (_, code) =>
  Math.max(0, '0123456789abcdef'.indexOf(String.fromCharCode(code))),
)
/** The places of the 32 hex digits in a uuid. */
const HEX_PLACES = [...NIL_UUID].flatMap((character, place) => (character === '-' ? [] : [place]))

/**
 * Returns the public id for a stored uuid, which is a TypeID. `fromUUID` of typeid-js returns the
 * same, but takes 20 times as long, which each event would pay.
 */
export function toId(prefix: IdPrefix, uuid: string): string {
  const read = (place: number) => HEX_VALUES[uuid.charCodeAt(HEX_PLACES[place] ?? 0)] ?? 0
  // The first two digits hold 8 bits of the uuid, and each further four digits hold 20.
  let digits = PAIRS[(read(0) << 4) | read(1)] ?? ''
  for (let at = 2; at < 32; at += 5) {
    const high = (read(at) << 6) | (read(at + 1) << 2) | (read(at + 2) >> 2)
    const low = ((read(at + 2) & 3) << 8) | (read(at + 3) << 4) | read(at + 4)
    digits += `${PAIRS[high]}${PAIRS[low]}`
  }
  return `${prefix}_${digits}`
}

/** Returns the uuid of a public id, or undefined if it is no well-formed id of that kind. */
export function parseId(prefix: IdPrefix, id: string): string | undefined {
  if (!id.startsWith(`${prefix}_`) || id.length !== prefix.length + 27) return undefined
  try {
    return toUUID(id as TypeId<IdPrefix>)
  } catch {
    return undefined
  }
}
