import type {
  AlikeTitles,
  Board,
  Card,
  CardEdit,
  CardResult,
  NewCard,
} from '../../../log/insights/schema.ts'
import { toApiPath } from '../api-paths.ts'
import { request, type Result } from '../request.ts'

export function readBoard(project: string): Promise<Result<Board>> {
  return request('GET', toBoardPath(project))
}

export function createCard(project: string, card: NewCard): Promise<Result<Card>> {
  return request('POST', toBoardPath(project), card)
}

export function editCard(project: string, id: string, edit: CardEdit): Promise<Result<Card>> {
  return request('PATCH', `${toBoardPath(project)}/${id}`, edit)
}

export function deleteCard(project: string, id: string): Promise<Result<{ id: string }>> {
  return request('DELETE', `${toBoardPath(project)}/${id}`)
}

/** Puts all cards of the board in this order. */
export function orderCards(project: string, cardIds: readonly string[]): Promise<Result<Board>> {
  return request('PUT', `${toBoardPath(project)}/order`, { cardIds })
}

export function readResult(project: string, id: string): Promise<Result<CardResult>> {
  return request('GET', `${toBoardPath(project)}/${id}/result`)
}

/** Groups the events that match `wanted` by their titles without numbers. */
export function readAlike(
  project: string,
  wanted: Readonly<Record<string, string>>,
): Promise<Result<AlikeTitles>> {
  return request('GET', `${toApiPath(project)}/alike?${new URLSearchParams(wanted)}`)
}

function toBoardPath(project: string) {
  return `${toApiPath(project)}/insights` as const
}
