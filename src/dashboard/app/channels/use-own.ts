import { useEffect } from 'preact/hooks'
import { channelDeeds } from '../feed/use-channels.ts'
import { useAnswer, type Asked } from '../parts/use-answer.ts'
import type { Answer } from '../request.ts'

/** What the server answers about a channel, read again after whatever was done to it from anywhere. */
export function useOwn<Data>(key: string, ask: () => Promise<Answer<Data>>): Asked<Data> {
  const asked = useAnswer(key, ask)
  const deeds = channelDeeds.value
  useEffect(() => {
    if (deeds > 0 && asked.data !== undefined) void asked.read()
  }, [deeds])
  return asked
}
