import type {
  ManagementToken,
  NewManagementToken,
  TokenBody,
} from '../../../access/tokens/schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { request, type Result } from '../request.ts'

export type { ManagementToken, NewManagementToken }

/** The own tokens of the account, or those of an organization. */
export type TokenOwner = 'account' | { organization: string }

export function readTokens(
  owner: TokenOwner,
  cursor: string | undefined,
): Promise<Result<Page<ManagementToken>>> {
  const query = new URLSearchParams({ limit: '20', ...(cursor && { cursor }) })
  return request('GET', `${toPath(owner)}?${query}`)
}

export function createToken(
  owner: TokenOwner,
  token: TokenBody,
): Promise<Result<NewManagementToken>> {
  return request('POST', toPath(owner), token)
}

export function withdrawToken(owner: TokenOwner, id: string): Promise<Result<unknown>> {
  return request('DELETE', `${toPath(owner)}/${encodeURIComponent(id)}`)
}

function toPath(owner: TokenOwner): `/api/${string}` {
  return owner === 'account'
    ? '/api/tokens'
    : `/api/organizations/${encodeURIComponent(owner.organization)}/tokens`
}
