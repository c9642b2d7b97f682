import { useEffect } from 'preact/hooks'
import { channelChanges } from '../feed/use-channels.ts'
import { useQuery, type Query } from '../components/use-query.ts'
import type { Result } from '../request.ts'

/** What the server answers about a channel, read again after whatever was done to it from anywhere. */
export function useChannelQuery<Data>(key: string, ask: () => Promise<Result<Data>>): Query<Data> {
  const query = useQuery(key, ask)
  const deeds = channelChanges.value
  useEffect(() => {
    if (deeds > 0 && query.data !== undefined) void query.refetch()
  }, [deeds])
  return query
}
