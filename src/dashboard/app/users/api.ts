import type { Static } from '@sinclair/typebox'
import type { Page } from '../../../http/envelope.ts'
import type { Erased } from '../../../log/identities/schema.ts'
import type {
  AliasChange,
  UserAlias,
  UserDetail,
  UserListItem,
  UserNames,
} from '../../../log/identities/user-schema.ts'
import { toApiPath } from '../api-paths.ts'
import { isSafeSegment } from '../paths.ts'
import { request, toFailure, type Result } from '../request.ts'

/** A user with the name to show: their own, or the user_id. */
type Named<Data> = Data & { name: string }
export type ListedUser = Named<Static<typeof UserListItem>>
export type User = Named<Static<typeof UserDetail>>

/** The pages that a search without matches reads, each for half a second. */
const MAX_EMPTY_PAGES = 20

export async function readUsers(
  project: string,
  search: string,
  cursor: string | undefined,
): Promise<Result<Page<ListedUser>>> {
  const readPage = (from: string | null | undefined) => {
    const query = new URLSearchParams({ ...(search && { search }), ...(from && { cursor: from }) })
    return request<Page<Static<typeof UserListItem>>>('GET', `${toApiPath(project)}/users?${query}`)
  }
  let result = await readPage(cursor)
  for (let count = 1; count < MAX_EMPTY_PAGES; count += 1) {
    if (!result.ok || result.data.items.length > 0 || result.data.nextCursor === null) break
    result = await readPage(result.data.nextCursor)
  }
  if (!result.ok) return result
  const { items, nextCursor } = result.data
  const toName = await readNames(project, items)
  return {
    ok: true,
    data: { items: items.map(user => ({ ...user, name: toName(user.userId) })), nextCursor },
  }
}

export async function readUser(project: string, user: string): Promise<Result<User>> {
  const result = await withSegment<Static<typeof UserDetail>>(user, path =>
    request('GET', `${toApiPath(project)}/users/${path}`),
  )
  if (!result.ok) return result
  const toName = await readNames(project, [result.data])
  return { ok: true, data: { ...result.data, name: toName(result.data.userId) } }
}

/** Reads the names of users as the feed shows them. Users without one have their user_id. */
async function readNames(
  project: string,
  users: readonly { userId: string }[],
): Promise<(userId: string) => string> {
  const path = `${toApiPath(project)}/users/names` as const
  const userIds = users.map(({ userId }) => userId)
  const result =
    users.length > 0
      ? await request<Static<typeof UserNames>>('POST', path, { userIds })
      : undefined
  const names = result?.ok ? result.data.items : []
  return userId => names.find(one => one.userId === userId)?.name ?? userId
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
