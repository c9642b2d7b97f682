import type { Card, CardResult } from '../../../log/insights/schema.ts'
import { MINUTE_MS, useQuery, type Query } from '../components/use-query.ts'
import { readResult } from './api.ts'

/** Counts what a card shows. */
export function useCardResult(project: string, card: Card): Query<CardResult> {
  const { id, kind, groupBy, metadataPath, q, hours } = card
  const key = JSON.stringify([project, id, kind, groupBy, metadataPath, q, hours])
  return useQuery(key, () => readResult(project, id), { everyMs: MINUTE_MS })
}
