import type { Static } from '@sinclair/typebox'
import type { ApiKey, KeyBody, KeyChange, NewApiKey } from '../../../access/keys/schema.ts'
import type { Page } from '../../../http/envelope.ts'
import { toApiPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'

export type Key = ApiKey
export type NewKey = Static<typeof NewApiKey>

export function readKeys(
  project: string,
  cursor: string | undefined,
): Promise<Result<Page<ApiKey>>> {
  const query = new URLSearchParams({ ...(cursor && { cursor }) })
  return request('GET', `${toApiPath(project)}/keys?${query}`)
}

export function createKey(project: string, key: KeyBody): Promise<Result<NewKey>> {
  return request('POST', `${toApiPath(project)}/keys`, key)
}

export function editKey(project: string, id: string, change: KeyChange): Promise<Result<ApiKey>> {
  return request('PATCH', `${toApiPath(project)}/keys/${id}`, change)
}

/** Creates a key like this one. The old key works for `overlapHours` more. */
export function rotateKey(
  project: string,
  id: string,
  overlapHours: number,
): Promise<Result<NewKey>> {
  return request('POST', `${toApiPath(project)}/keys/${id}/rotate`, { overlapHours })
}

export function revokeKey(project: string, id: string): Promise<Result<unknown>> {
  return request('DELETE', `${toApiPath(project)}/keys/${id}`)
}
