import type { Card, CardResult } from '../../../log/insights/schema.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import { readResult } from './api.ts'

/** How often events are counted again. */
export const COUNT_MS = 60_000

/** Counts what a card shows. */
export function useCardResult(project: string, card: Card): Query<CardResult> {
  const { id, kind, groupBy, metadataPath, q, hours } = card
  const key = JSON.stringify([project, id, kind, groupBy, metadataPath, q, hours])
  return useQuery(key, () => readResult(project, id), { everyMs: COUNT_MS })
}
