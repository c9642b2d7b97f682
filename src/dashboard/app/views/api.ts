import type { NewView, View, ViewEdit, Views } from '../../../log/views/schema.ts'
import { toApiPath as toProjectPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'

export type { View }

export function readViews(project: string): Promise<Result<Views>> {
  return request('GET', toPath(project))
}

export function createView(project: string, view: NewView): Promise<Result<View>> {
  return request('POST', toPath(project), view)
}

export function editView(project: string, id: string, edit: ViewEdit): Promise<Result<View>> {
  return request('PATCH', toPath(project, id), edit)
}

export function deleteView(project: string, id: string): Promise<Result<unknown>> {
  return request('DELETE', toPath(project, id))
}

export function switchBell(project: string, id: string, isOn: boolean): Promise<Result<unknown>> {
  return request('PUT', `${toPath(project, id)}/bell`, { isOn })
}

export function markSeen(project: string, id: string, seq: number): Promise<Result<unknown>> {
  return request('PUT', `${toPath(project, id)}/read`, { seq })
}

function toPath(project: string, id?: string): `/api/${string}` {
  const path = `${toProjectPath(project)}/views` as const
  return id === undefined ? path : `${path}/${encodeURIComponent(id)}`
}
