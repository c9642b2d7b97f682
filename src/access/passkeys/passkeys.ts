import { writeAudit, type Actor } from '../audit/audit.ts'
import { requireWayIn } from '../sign-in/ways-in.ts'
import type { Fragment, Queryable, Tx } from '../../database/sql.ts'
import { weakenSessions } from '../guard/sessions.ts'
import { Fault } from '../../base/errors.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import type { PasskeyInfo } from './schema.ts'
import type { RegisteredCredential } from './webauthn.ts'

const MAX_PASSKEYS = 20

/** A passkey for WebAuthn: how a browser finds it. `id` is base64url. */
export interface CredentialDescriptor {
  type: 'public-key'
  id: string
  transports: string[]
}

/** Refers to a passkey of an account. `accountId` is a uuid, `id` the public id. */
interface PasskeyRef {
  accountId: string
  id: string
}

/** A stored passkey. `id` and `accountId` are uuids. */
export interface StoredPasskey {
  id: string
  accountId: string
  publicKey: Uint8Array
  isDisabled: boolean
}

/** Returns the user handle of an account's passkeys, in base64url. */
export function toUserHandle(accountId: string): string {
  return Buffer.from(accountId.replaceAll('-', ''), 'hex').toString('base64url')
}

/** Returns the passkeys of an account, oldest first. */
export function listPasskeys(sql: Queryable, accountId: string): Promise<PasskeyInfo[]> {
  return selectPasskeys(sql, sql`account_id = ${accountId}`)
}

/** Returns one passkey of an account. Throws `not_found`. */
export async function getPasskey(sql: Queryable, ref: PasskeyRef): Promise<PasskeyInfo> {
  const [passkey] = await selectPasskeys(sql, isPasskey(sql, ref))
  if (!passkey) throw passkeyNotFound()
  return passkey
}

async function selectPasskeys(sql: Queryable, where: Fragment): Promise<PasskeyInfo[]> {
  const rows = await sql<PasskeyInfo[]>`
    select
      id, name, is_synced as "isSynced", to_iso(created_at) as "createdAt",
      to_iso(last_used_at) as "lastUsedAt", disabled_at is not null as "isDisabled"
    from passkeys
    where ${where}
    order by id
  `
  return rows.map(row => ({ ...row, id: toId('pky', row.id) }))
}

/** Returns the credentials of an account for WebAuthn; without the disabled ones if `isUsable`. */
export async function listCredentials(
  sql: Queryable,
  accountId: string,
  { isUsable }: { isUsable: boolean },
): Promise<CredentialDescriptor[]> {
  const rows = await sql<{ credential_id: Uint8Array; transports: string[] }[]>`
    select credential_id, transports
    from passkeys
    where account_id = ${accountId} ${isUsable ? sql`and disabled_at is null` : sql``}
    order by id
  `
  return rows.map(row => ({
    type: 'public-key',
    id: Buffer.from(row.credential_id).toString('base64url'),
    transports: row.transports,
  }))
}

/** Finds the passkey with this credential id, which is base64url. */
export async function findPasskey(
  sql: Queryable,
  credentialId: string,
): Promise<StoredPasskey | undefined> {
  const [row] = await sql<StoredPasskey[]>`
    select
      id, account_id as "accountId", public_key as "publicKey", disabled_at is not null as "isDisabled"
    from passkeys
    where credential_id = decode(${toHex(credentialId)}, 'hex')
  `
  return row
}

/**
 * Adds a passkey to an account, which the caller has locked. Returns its public id. Throws
 * `conflict` if it exists, or if there are too many.
 */
export async function addPasskey(
  tx: Tx,
  actor: Actor,
  { accountId, name, credential }: NewPasskey,
): Promise<string> {
  const [count] = await tx<[{ n: number }]>`
    select count(*)::int as n from passkeys where account_id = ${accountId}
  `
  if (count.n >= MAX_PASSKEYS) {
    throw new Fault('conflict', `An account can have at most ${MAX_PASSKEYS} passkeys. Remove one.`)
  }
  const { uuid, id } = newId('pky')
  const added = await tx`
    insert into passkeys (
      id, account_id, credential_id, public_key, counter, name, transports, is_synced
    )
    values (
      ${uuid}, ${accountId}, decode(${toHex(credential.id)}, 'hex'),
      decode(${Buffer.from(credential.publicKey).toString('hex')}, 'hex'), ${credential.counter},
      ${name}, ${JSON.stringify(credential.transports)}::text::json, ${credential.isSynced}
    )
    on conflict (credential_id) do nothing
  `
  if (added.count === 0) throw new Fault('conflict', 'This passkey is already in use')
  await writeAudit(tx, actor, { action: 'passkey.created', target: id, details: { name } })
  return id
}

interface NewPasskey {
  accountId: string
  name: string
  credential: RegisteredCredential
}

/** Renames a passkey. Throws `not_found`. */
export async function renamePasskey(
  tx: Tx,
  actor: Actor,
  { name, ...ref }: PasskeyRef & { name: string },
): Promise<void> {
  const renamed = await tx`update passkeys set name = ${name} where ${isPasskey(tx, ref)}`
  if (renamed.count === 0) throw passkeyNotFound()
  await writeAudit(tx, actor, { action: 'passkey.renamed', target: ref.id, details: { name } })
}

/**
 * Removes a passkey, and ends the sessions that it made except `sessionId`. Throws `not_found`, and
 * `conflict` if it is the last way to sign in. The caller has locked the account.
 */
export async function removePasskey(
  tx: Tx,
  actor: Actor,
  { sessionId, ...ref }: PasskeyRef & { sessionId: string },
  issuers: readonly string[],
): Promise<void> {
  const { accountId, id } = ref
  const ended = await tx`
    delete from sessions
    where passkey_id = ${parseId('pky', id) ?? null} and account_id = ${accountId} and id <> ${sessionId}
  `
  const [removed] = await tx<{ name: string }[]>`
    delete from passkeys where ${isPasskey(tx, ref)} returning name
  `
  if (!removed) throw passkeyNotFound()
  await weakenSessions(tx, accountId, sessionId)
  await requireWayIn(tx, accountId, issuers)
  const details = { name: removed.name, sessionsEnded: ended.count }
  await writeAudit(tx, actor, { action: 'passkey.removed', target: id, details })
}

/**
 * Records a verified use of a passkey, whose account the caller has locked. Returns `cloned` if its
 * counter went backwards: the passkey is then disabled, and the sessions that it made have ended.
 * Returns `gone` if it was removed or disabled meanwhile.
 */
export async function recordUse(
  tx: Tx,
  actor: Actor,
  id: string,
  { counter, isSynced }: { counter: number; isSynced: boolean },
): Promise<'used' | 'cloned' | 'gone'> {
  const [stored] = await tx<{ account_id: string; name: string; counter: string }[]>`
    select account_id, name, counter
    from passkeys
    where id = ${id} and disabled_at is null
    for update
  `
  if (!stored) return 'gone'
  const isCounting = counter > 0 || Number(stored.counter) > 0
  if (!isCounting || counter > Number(stored.counter)) {
    await tx`
      update passkeys set counter = ${counter}, is_synced = ${isSynced}, last_used_at = now()
      where id = ${id}
    `
    return 'used'
  }
  await tx`update passkeys set disabled_at = now() where id = ${id}`
  const ended = await tx`delete from sessions where passkey_id = ${id}`
  await weakenSessions(tx, stored.account_id)
  await writeAudit(tx, actor, {
    action: 'passkey.disabled',
    target: toId('pky', id),
    details: { name: stored.name, sessionsEnded: ended.count },
  })
  return 'cloned'
}

/** The SQL condition that a row is this passkey. An invalid id matches no row. */
function isPasskey(sql: Queryable, { accountId, id }: PasskeyRef): Fragment {
  return sql`account_id = ${accountId} and id = ${parseId('pky', id) ?? null}`
}

function passkeyNotFound(): Fault {
  return new Fault('not_found', 'None of your passkeys has this id')
}

function toHex(base64url: string): string {
  return Buffer.from(base64url, 'base64url').toString('hex')
}
