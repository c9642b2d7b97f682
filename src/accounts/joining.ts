import { writeAudit, type Actor } from '../audit/audit.ts'
import type { Pool } from '../db/pool.ts'
import type { Queryable, Tx } from '../db/sql.ts'
import { transact } from '../db/transaction.ts'
import { parseEmail } from '../email.ts'
import { Fault } from '../errors.ts'
import { Invalid, invalidField } from '../http/validation.ts'
import { newId, toId } from '../ids.ts'
import { findInvite, takeInvite, type LiveInvite } from './invites.ts'
import { toName } from './name.ts'
import type { AcceptBody, Joined } from './organization-schema.ts'
import { checkPassword, hashPassword } from './passwords.ts'
import type { Cookies } from './cookies.ts'
import type { Admitted } from './sessions.ts'
import { signIn, type Visit } from './sign-in.ts'

const MAX_MEMBERS = 1_000

/** The account that somebody makes in order to join. */
export interface Newcomer {
  name: string
  email: string
  password: string
}

/** The new account in a body. Throws `Invalid` with what it lacks. */
export function toNewcomer({ name, email, password }: AcceptBody): Newcomer {
  if (name !== undefined && email !== undefined && password !== undefined) {
    return { name: toName(name), email: parseEmail(email) ?? '', password }
  }
  throw new Invalid(
    Object.entries({ name, email, password })
      .filter(([, value]) => value === undefined)
      .map(([field]) => ({ path: [field], code: 'required', message: 'Required' })),
  )
}

/** Joins with the account of whoever is signed in. Throws `not_found` for a dead invite, which changes nothing. */
export async function joinAsPerson(
  tx: Tx,
  { person }: Admitted,
  { token, actor }: { token: string; actor: Actor },
): Promise<Joined> {
  const invite = await takeInvite(tx, token)
  if (!invite) throw deadInvite()
  if (invite.email !== null && invite.email !== person.email) {
    throw new Fault(
      'forbidden',
      `This invite is for another e-mail address than yours, ${person.email}`,
    )
  }
  return join(tx, invite, person.id, actor)
}

/** Makes an account, joins with it and signs it in: `cookies` are values of Set-Cookie. */
export async function joinAsNewcomer(
  pool: Pool,
  newcomer: Newcomer,
  { token, visit, cookies }: { token: string; visit: Visit & { actor: Actor }; cookies: Cookies },
): Promise<{ joined: Joined; cookies: string[] }> {
  const { name, email, password } = newcomer
  // What costs little is asked first: only who holds a live invite makes the server hash.
  await pool.run(async sql => {
    const invite = await findInvite(sql, token)
    if (!invite) throw deadInvite()
    checkAddress(invite, email)
    if (await hasAccount(sql, email)) throw knownAddress()
  })
  checkPassword(password, { email, name })
  const hash = await hashPassword(password)
  return transact(pool, async tx => {
    const invite = await takeInvite(tx, token)
    if (!invite) throw deadInvite()
    checkAddress(invite, email)
    const { uuid: personId } = newId('per')
    const made = await tx`
      insert into people (id, name, email, password_hash)
      values (${personId}, ${name}, ${email}, ${hash})
      on conflict (email) do nothing
    `
    if (made.count === 0) throw knownAddress()
    await writeAudit(tx, visit.actor, { action: 'account.created', target: toId('per', personId) })
    const joined = await join(tx, invite, personId, { ...visit.actor, kind: 'person', personId })
    return { joined, cookies: (await signIn(tx, visit, { personId, cookies })).cookies }
  })
}

export function deadInvite(): Fault {
  return new Fault('not_found', 'This invite is used, expired or withdrawn: ask for another one')
}

async function join(
  tx: Tx,
  { organizationId, organization, role }: LiveInvite,
  personId: string,
  actor: Actor,
): Promise<Joined> {
  const [found] = await tx<[{ members: number; is_member: boolean }]>`
    select
      count(*)::int as members, coalesce(bool_or(person_id = ${personId}), false) as is_member
    from memberships
    where organization_id = ${organizationId}
  `
  // A higher role is for an owner to give: the invite stays open for whom it was made.
  if (found.is_member) throw new Fault('conflict', 'You are a member of this organization already')
  if (found.members >= MAX_MEMBERS) {
    throw new Fault('conflict', `An organization has at most ${MAX_MEMBERS} members`)
  }
  await tx`
    insert into memberships (organization_id, person_id, role)
    values (${organizationId}, ${personId}, ${role})
  `
  await writeAudit(tx, actor, {
    action: 'member.joined',
    organizationId,
    target: toId('per', personId),
    details: { role },
  })
  return { organization: { id: toId('org', organizationId), name: organization.name }, role }
}

function checkAddress(invite: LiveInvite, email: string): void {
  if (invite.email === null || invite.email === email) return
  throw invalidField('email', 'invalid_value', 'This invite is for another e-mail address')
}

async function hasAccount(sql: Queryable, email: string): Promise<boolean> {
  const [found] = await sql`select from people where email = ${email}`
  return found !== undefined
}

function knownAddress(): Fault {
  return new Fault(
    'conflict',
    'There is an account with this e-mail already: sign in first, then open the link again',
  )
}
