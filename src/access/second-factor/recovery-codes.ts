import { randomBytes } from 'node:crypto'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { hashSecret } from '../guard/secret.ts'

const CODES = 10
const BYTES = 10
// Crockford's base32, which has no letters that look like digits.
const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz'

/** Replaces the recovery codes of an account. Returns the new ones, which are not stored. */
export async function createRecoveryCodes(tx: Tx, accountId: string): Promise<string[]> {
  const codes = Array.from({ length: CODES }, newCode)
  await tx`delete from recovery_codes where account_id = ${accountId}`
  await tx`
    insert into recovery_codes (account_id, hash)
    select ${accountId}, decode(h, 'hex')
    from unnest(${toArray(codes.map(code => hashSecret(normalize(code))))}::text[]) as h
  `
  return codes
}

/** Uses up a recovery code. Returns false if it is unknown or was used. */
export async function acceptRecoveryCode(
  tx: Tx,
  accountId: string,
  code: string,
): Promise<boolean> {
  const used = await tx`
    update recovery_codes set used_at = now()
    where account_id = ${accountId} and hash = decode(${hashSecret(normalize(code))}, 'hex')
      and used_at is null
  `
  return used.count === 1
}

/** Returns the number of recovery codes that are left. */
export async function countRecoveryCodes(sql: Queryable, accountId: string): Promise<number> {
  const [row] = await sql<[{ n: number }]>`
    select count(*)::int as n
    from recovery_codes
    where account_id = ${accountId} and used_at is null
  `
  return row.n
}

/** Returns 80 random bits in groups of four, such as `7k3q-m0zt-9hvw-2c8x`. */
function newCode(): string {
  const bits = [...randomBytes(BYTES)].map(byte => byte.toString(2).padStart(8, '0')).join('')
  const letters = bits.match(/.{5}/g)?.map(group => LETTERS[parseInt(group, 2)]) ?? []
  return letters.join('').replace(/(.{4})(?=.)/g, '$1-')
}

/** Returns the letters of a code as entered. Letters that look alike are equal. */
function normalize(code: string): string {
  return code.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1')
}
