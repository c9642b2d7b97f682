import { fromUUID, toUUID, type TypeId } from 'typeid-js'

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

/** The public spelling of a stored uuid. */
export function toId(prefix: IdPrefix, uuid: string): string {
  return fromUUID(uuid, prefix)
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
