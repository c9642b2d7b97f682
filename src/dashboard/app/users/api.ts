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
  return about(user, path => request('GET', `${toApiPath(project)}/users/${path}`))
}

export function eraseUser(project: string, user: string): Promise<Result<Static<typeof Erased>>> {
  return about(user, path => request('DELETE', `${toApiPath(project)}/users/${path}`))
}

export function readAliasChanges(
  project: string,
  user: string,
  cursor: string | undefined,
): Promise<Result<Page<AliasChange>>> {
  const query = new URLSearchParams({ limit: '20', ...(cursor && { cursor }) })
  return about(user, path =>
    request('GET', `${toApiPath(project)}/users/${path}/aliases/history?${query}`),
  )
}

/** Gives a user an alias; with `from`, one that is taken from that user. */
export function addAlias(
  project: string,
  user: string,
  alias: string,
  from?: string,
): Promise<Result<UserAlias>> {
  const body = { alias, ...(from !== undefined && { from }) }
  return about(user, path => request('POST', `${toApiPath(project)}/users/${path}/aliases`, body))
}

export function removeAlias(
  project: string,
  user: string,
  alias: string,
): Promise<Result<unknown>> {
  return about(user, path =>
    about(alias, name => request('DELETE', `${toApiPath(project)}/users/${path}/aliases/${name}`)),
  )
}

/** Asks about a user or an alias, unless the request would lead elsewhere: `..` after `users/` is the project itself. */
async function about<Data>(
  name: string,
  ask: (path: string) => Promise<Result<Data>>,
): Promise<Result<Data>> {
  if (isSafeSegment(name)) return ask(encodeURIComponent(name))
  const message = 'No address can lead to this name. An application can change it with identify.'
  return { ok: false, failure: toFailure({ code: 'no_address', message }) }
}
