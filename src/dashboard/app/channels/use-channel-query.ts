import { useEffect } from 'preact/hooks'
import { channelChanges } from '../feed/use-channels.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import type { Result } from '../request.ts'

/** A query about a channel that reloads after every change to channels. */
export function useChannelQuery<Data>(key: string, ask: () => Promise<Result<Data>>): Query<Data> {
  const query = useQuery(key, ask)
  const changes = channelChanges.value
  useEffect(() => {
    if (changes > 0 && query.data !== undefined) void query.refetch()
  }, [changes])
  return query
}
