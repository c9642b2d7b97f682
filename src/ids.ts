import { fromUUID, toUUID, typeidUnboxed, type TypeId } from 'typeid-js'

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

export function newId(prefix: IdPrefix): Id {
  const id = typeidUnboxed(prefix)
  return { id, uuid: toUUID(id) }
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
