import type { Tx } from '../db/sql.ts'
import { newId } from '../ids.ts'
import type { AuditAction } from './actions.ts'

/** Who does something: a person in a session, somebody who is not signed in, the command line, or the server itself. */
export interface Actor {
  kind: 'account' | 'anonymous' | 'command line' | 'server'
  /** The uuids of a person and their session. */
  accountId?: string | undefined
  sessionId?: string | undefined
  address?: string | undefined
  userAgent?: string | undefined
}

export const COMMAND_LINE: Actor = { kind: 'command line' }
export const SERVER: Actor = { kind: 'server' }

/** What was done: `action` as `key.created`; ids are uuids, but for `target`, which is the public id. */
export interface AuditRecord {
  action: AuditAction
  organizationId?: string | undefined
  projectId?: string | undefined
  target?: string | undefined
  /** A few small facts, like a role: never a secret, and nothing of an event or of who a user is. */
  details?: Readonly<Record<string, string | number | boolean | null>>
}

/** Writes into the audit log what `actor` does, in the transaction that does it: neither is there without the other. */
export async function writeAudit(tx: Tx, actor: Actor, deed: AuditRecord): Promise<void> {
  const { uuid } = newId('aud')
  await tx`
    insert into audit_log (
      id, organization_id, project_id, actor, account_id, session_id, action, target, details, address, user_agent
    )
    values (
      ${uuid}, ${deed.organizationId ?? null}, ${deed.projectId ?? null}, ${actor.kind},
      ${actor.accountId ?? null}, ${actor.sessionId ?? null}, ${deed.action}, ${deed.target ?? null},
      ${JSON.stringify(deed.details ?? {})}::text::json, ${actor.address ?? null},
      ${actor.userAgent?.slice(0, 500) ?? null}
    )
  `
}
