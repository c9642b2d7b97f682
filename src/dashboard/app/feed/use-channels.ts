import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import type { ProjectChannel } from '../../../channels/schema.ts'
import { readChannels } from './api.ts'
import type { Row } from './log.ts'

/** What their unread numbers may lag behind. */
const REFRESH_MS = 2_000

/** Counts what people do to channels and to what they hear of them: whoever shows any reads again. */
export const channelChanges = signal(0)

/** The icons of channels by their ids, for events that have none of their own. */
export const channelIcons = signal<Readonly<Record<string, string | null>>>({})

export interface Channels {
  /** Undefined until they have been read; what was known stays when reading fails. */
  list: readonly ProjectChannel[] | undefined
  /** How many there are beyond these. */
  more: number
  refresh(): void
  /** Refreshes when a row is of a channel that is not known yet. */
  onRows(rows: readonly Row[]): void
}

/** The channels of a project, read again when something about them has changed. */
export function useChannels(project: string): Channels {
  const [list, setList] = useState<readonly ProjectChannel[]>()
  const [more, setMore] = useState(0)
  const known = useRef(new Set<string>())
  const refreshing = useRef(createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => {}))

  useEffect(() => {
    let isOver = false
    const read = async () => {
      const result = await readChannels(project)
      if (isOver || !result.ok) return
      const { items, total } = result.data
      for (const { id } of items) known.current.add(id)
      const icons = Object.fromEntries(items.map(({ id, icon }) => [id, icon]))
      // Every row without an icon follows them.
      if (JSON.stringify(icons) !== JSON.stringify(channelIcons.peek())) channelIcons.value = icons
      setList(items)
      setMore(Math.max(0, total - items.length))
    }
    const batch = createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => void read())
    refreshing.current = batch
    known.current = new Set()
    setList(undefined)
    batch.trigger()
    return () => {
      isOver = true
      batch.stop()
    }
  }, [project])

  useEffect(() => {
    if (channelChanges.value > 0) refreshing.current.trigger()
  }, [channelChanges.value])

  const refresh = () => refreshing.current.trigger()
  return {
    list,
    more,
    refresh,
    onRows(rows) {
      const isNew = rows.some(({ channelId }) => !known.current.has(channelId))
      // Remembered at once: a channel beyond the end of the list is asked for only once.
      for (const { channelId } of rows) known.current.add(channelId)
      if (isNew) refresh()
    },
  }
}
