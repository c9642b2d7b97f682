import { newId } from '../../base/ids.ts'
import type { Tx } from '../../database/sql.ts'
import type { AuditAction } from './actions.ts'

/**
 * The author of an action: an account in a session, a management token, an API key, an anonymous
 * client, the command line, or the server itself.
 */
export interface Actor {
  kind: 'account' | 'token' | 'API key' | 'anonymous' | 'command line' | 'server'
  /** The uuids of the account and its session. A token acts for the account that created it. */
  accountId?: string | undefined
  sessionId?: string | undefined
  /** The uuid and name of the token. */
  token?: { id: string; name: string } | undefined
  /** The uuid of the API key. */
  keyId?: string | undefined
  address?: string | undefined
  userAgent?: string | undefined
}

export const COMMAND_LINE: Actor = { kind: 'command line' }
export const SERVER: Actor = { kind: 'server' }

/** An action for the audit log. Ids are uuids, except `target`, the public id of the object. */
export interface AuditRecord {
  action: AuditAction
  organizationId?: string | undefined
  projectId?: string | undefined
  target?: string | undefined
  /** A few small values, such as a role. Never secrets, and nothing of events or users. */
  details?: Readonly<Record<string, string | number | boolean | null>>
}

/** Writes an entry of the audit log, in the transaction of the action itself. */
export async function writeAudit(tx: Tx, actor: Actor, record: AuditRecord): Promise<void> {
  const { uuid } = newId('aud')
  await tx`
    insert into audit_log (
      id, organization_id, project_id, actor, account_id, session_id, token_id, token_name, key_id,
      action, target, details, address, user_agent
    )
    values (
      ${uuid}, ${record.organizationId ?? null}, ${record.projectId ?? null}, ${actor.kind},
      ${actor.accountId ?? null}, ${actor.sessionId ?? null}, ${actor.token?.id ?? null},
      ${actor.token?.name ?? null}, ${actor.keyId ?? null}, ${record.action}, ${record.target ?? null},
      ${JSON.stringify(record.details ?? {})}::text::json, ${actor.address ?? null},
      ${actor.userAgent?.slice(0, 500) ?? null}
    )
  `
}
