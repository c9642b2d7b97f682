import { useEffect } from 'preact/hooks'
import type { Card, CardResult } from '../../../log/insights/schema.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import { readResult } from './api.ts'

const REFRESH_MS = 60_000

/** Counts what a card shows: now, every minute while the page is visible, and when it appears. */
export function useCardResult(project: string, card: Card): Query<CardResult> {
  const { id, kind, groupBy, metadataPath, q, hours } = card
  const key = JSON.stringify([project, id, kind, groupBy, metadataPath, q, hours])
  const query = useQuery(key, () => readResult(project, id))
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
