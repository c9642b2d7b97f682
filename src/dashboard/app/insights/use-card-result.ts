import { useEffect } from 'preact/hooks'
import type { Card, CardResult } from '../../../log/insights/schema.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import type { Result } from '../request.ts'
import { readResult } from './api.ts'

const REFRESH_MS = 60_000

/** Counts what a card shows. */
export function useCardResult(project: string, card: Card): Query<CardResult> {
  const { id, kind, groupBy, metadataPath, q, hours } = card
  const key = JSON.stringify([project, id, kind, groupBy, metadataPath, q, hours])
  return useCounts(key, () => readResult(project, id))
}

/** Counts events: now, every minute while the page is visible, and when it appears. */
export function useCounts<Data>(key: string, ask: () => Promise<Result<Data>>): Query<Data> {
  const query = useQuery(key, ask)
  useEffect(() => {
    const refresh = () => {
      if (!document.hidden) void query.refetch()
    }
    const timer = setInterval(refresh, REFRESH_MS)
    document.addEventListener('visibilitychange', refresh)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', refresh)
    }
  }, [key])
  return query
}
