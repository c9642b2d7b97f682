import { Fault } from '../../base/errors.ts'
import type { Queryable } from '../../database/sql.ts'

/**
 * Stores whether passwords are off, as the setting PASSWORDS says. While they are off, only
 * passwords of owners and operators that were set from the machine can be used.
 */
export async function storePasswordSwitch(sql: Queryable, arePasswordsOff: boolean): Promise<void> {
  await sql`
    update installation set are_passwords_off = ${arePasswordsOff}
    where are_passwords_off <> ${arePasswordsOff}
  `
}

/** Returns whether passwords are off. */
export async function arePasswordsOff(sql: Queryable): Promise<boolean> {
  const [row] = await sql<[{ off: boolean }]>`select are_passwords_off as off from installation`
  return row.off
}

/** Throws `forbidden` if passwords are off. */
export async function requirePasswords(sql: Queryable): Promise<void> {
  if (await arePasswordsOff(sql)) throw passwordsOff()
}

/** Returns whether the password of an account can be used. */
export async function isPasswordUsable(sql: Queryable, accountId: string): Promise<boolean> {
  const [row] = await sql<[{ is_usable: boolean }]>`
    select is_password_usable(${accountId}) as is_usable
  `
  return row.is_usable
}

/** Throws `forbidden` unless the password of an account can be used. */
export async function requireUsablePassword(sql: Queryable, accountId: string): Promise<void> {
  if (!(await isPasswordUsable(sql, accountId))) throw passwordsOff()
}

function passwordsOff(): Fault {
  return new Fault(
    'forbidden',
    'Passwords are off on this server. Sign in with a passkey, or at a provider.',
  )
}
