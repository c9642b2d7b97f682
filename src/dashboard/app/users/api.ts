import type { Static } from '@sinclair/typebox'
import type { Page } from '../../../http/envelope.ts'
import type { Erased } from '../../../identities/schema.ts'
import type {
  AliasChange,
  UserAlias,
  UserDetail,
  UserListItem,
} from '../../../identities/user-schema.ts'
import { toApiPath } from '../feed/api.ts'
import { isSafeSegment } from '../paths.ts'
import { request, toFailure, type Result } from '../request.ts'

export type ListedUser = Static<typeof UserListItem>
export type User = Static<typeof UserDetail>

export function readUsers(
  project: string,
  search: string,
  cursor: string | undefined,
): Promise<Result<Page<ListedUser>>> {
  const query = new URLSearchParams({ ...(search && { search }), ...(cursor && { cursor }) })
  return request('GET', `${toApiPath(project)}/users?${query}`)
}

export function readUser(project: string, user: string): Promise<Result<User>> {
  return withSegment(user, path => request('GET', `${toApiPath(project)}/users/${path}`))
}

export function eraseUser(project: string, user: string): Promise<Result<Static<typeof Erased>>> {
  return withSegment(user, path => request('DELETE', `${toApiPath(project)}/users/${path}`))
}

export function readAliasChanges(
  project: string,
  user: string,
  cursor: string | undefined,
): Promise<Result<Page<AliasChange>>> {
  const query = new URLSearchParams({ limit: '20', ...(cursor && { cursor }) })
  return withSegment(user, path =>
    request('GET', `${toApiPath(project)}/users/${path}/aliases/history?${query}`),
  )
}

/** Adds an alias to a user; with `from`, moves it from that user. */
export function addAlias(
  project: string,
  user: string,
  alias: string,
  from?: string,
): Promise<Result<UserAlias>> {
  const body = { alias, ...(from !== undefined && { from }) }
  return withSegment(user, path =>
    request('POST', `${toApiPath(project)}/users/${path}/aliases`, body),
  )
}

export function removeAlias(
  project: string,
  user: string,
  alias: string,
): Promise<Result<unknown>> {
  return withSegment(user, path =>
    withSegment(alias, name =>
      request('DELETE', `${toApiPath(project)}/users/${path}/aliases/${name}`),
    ),
  )
}

/** Sends a request about a user or alias, unless the name would change its path, as `..` does. */
async function withSegment<Data>(
  name: string,
  send: (path: string) => Promise<Result<Data>>,
): Promise<Result<Data>> {
  if (isSafeSegment(name)) return send(encodeURIComponent(name))
  const message = 'This ID cannot be part of a URL. Use POST /v1/identify to change it.'
  return { ok: false, failure: toFailure({ code: 'invalid_name', message }) }
}
