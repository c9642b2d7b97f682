import type { Role } from '../../../src/access/guard/permissions.ts'
import { toArray } from '../../../src/database/arrays.ts'
import { newId } from '../../../src/base/ids.ts'
import { hashToken, MANAGEMENT_TOKEN } from '../../../src/base/token-form.ts'
import { createApi } from './signed-in-account.ts'
import type { Booted } from '../servers/server.ts'

interface TokenOptions {
  /** The uuid of its creator. */
  accountId: string
  /** The uuid of the organization; none for a personal token. */
  organizationId?: string
  role?: Role
  /** The uuids of the projects to which it is limited. */
  projectIds?: string[]
  name?: string
  isMultiFactor?: boolean
  /** An interval from now. */
  expiresIn?: string
}

/** A management token, with functions that request /api with it alone. */
export type TestToken = ReturnType<typeof createTokenApi> & {
  uuid: string
  id: string
  secret: string
}

/** Inserts a management token: its creation has its own tests. */
export async function newManagementToken(
  { sql, url }: Pick<Booted, 'sql' | 'url'>,
  options: TokenOptions,
): Promise<TestToken> {
  const { accountId, organizationId, projectIds } = options
  const { id, uuid } = newId('tok')
  const secret = MANAGEMENT_TOKEN.newToken()
  await sql`
    insert into management_tokens (
      id, hash, last_four, name, account_id, organization_id, role, project_ids,
      is_multi_factor, expires_at
    )
    values (
      ${uuid}, decode(${hashToken(secret)}, 'hex'), ${secret.slice(-4)}, ${options.name ?? 'Test token'},
      ${accountId}, ${organizationId ?? null}, ${options.role ?? 'owner'},
      ${projectIds ? toArray(projectIds) : null}::uuid[], ${options.isMultiFactor ?? false},
      now() + ${options.expiresIn ?? '90 days'}::interval
    )
  `
  return { id, uuid, secret, ...createTokenApi(url, secret) }
}

/** Returns functions that request /api with a bearer token of any kind, like a program. */
export function createTokenApi(url: string, bearer: string, headers: Record<string, string> = {}) {
  return createApi(url, undefined, { authorization: `Bearer ${bearer}`, ...headers })
}
