import type { Static } from '@sinclair/typebox'
import type { Page } from '../../../http/envelope.ts'
import type { ApiKey, KeyBody, KeyChange, NewApiKey } from '../../../keys/schema.ts'
import { toPath } from '../feed/calls.ts'
import { request, type Answer } from '../request.ts'

export type Key = ApiKey
export type NewKey = Static<typeof NewApiKey>

export function readKeys(
  project: string,
  cursor: string | undefined,
): Promise<Answer<Page<ApiKey>>> {
  const query = new URLSearchParams({ ...(cursor && { cursor }) })
  return request('GET', `${toPath(project)}/keys?${query}`)
}

export function createKey(project: string, key: KeyBody): Promise<Answer<NewKey>> {
  return request('POST', `${toPath(project)}/keys`, key)
}

export function editKey(project: string, id: string, change: KeyChange): Promise<Answer<ApiKey>> {
  return request('PATCH', `${toPath(project)}/keys/${id}`, change)
}

/** A new key like this one, which lives on for so many hours. */
export function rotateKey(
  project: string,
  id: string,
  overlapHours: number,
): Promise<Answer<NewKey>> {
  return request('POST', `${toPath(project)}/keys/${id}/rotate`, { overlapHours })
}

export function revokeKey(project: string, id: string): Promise<Answer<unknown>> {
  return request('DELETE', `${toPath(project)}/keys/${id}`)
}
