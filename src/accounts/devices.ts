import type { Tx } from '../db/sql.ts'
import { hashSecret, newSecret } from './secret.ts'

const MAX_DEVICES = 20

/**
 * Makes a browser known for a person, whose row must be locked, under a new secret, which is in this answer and nowhere
 * else. The old one, if it was known, ends for everybody who signs in there. Of 20 the one unused for longest goes.
 */
export async function rememberDevice(
  tx: Tx,
  personId: string,
  device: string | undefined,
): Promise<string> {
  const fresh = newSecret(256)
  const hash = hashSecret(fresh)
  if (device !== undefined) {
    await tx`
      update known_devices set hash = decode(${hash}, 'hex')
      where hash = decode(${hashSecret(device)}, 'hex')
    `
  }
  await tx`
    insert into known_devices (hash, person_id)
    values (decode(${hash}, 'hex'), ${personId})
    on conflict (hash, person_id) do update set last_used_at = now()
  `
  await tx`
    delete from known_devices
    where person_id = ${personId} and hash in (
      select hash
      from known_devices
      where person_id = ${personId}
      order by last_used_at desc, hash
      offset ${MAX_DEVICES}
    )
  `
  return fresh
}

/** Makes every browser of a person a strange one. */
export async function forgetDevices(tx: Tx, personId: string): Promise<void> {
  await tx`delete from known_devices where person_id = ${personId}`
}
