import { effect, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { createThrottle } from '../live/throttle.ts'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { closeSeen, listNotifications } from '../push/seen.ts'
import { session } from '../session.ts'
import { readChannels } from './api.ts'
import type { Row } from './log.ts'

/** How long unread counts may lag behind. */
const REFRESH_MS = 2_000

/** Counts changes to channels and notification settings. Components that show them reload. */
export const channelChanges = signal(0)

/** Channel icons by channel ID, for events without an icon. */
export const channelIcons = signal<Readonly<Record<string, string | null>>>({})

export interface Channels {
  /** Undefined until loaded. Kept when loading again fails. */
  list: readonly ProjectChannel[] | undefined
  /** How many channels are not in `list`. */
  more: number
  refresh(): void
  /** Refreshes if a row belongs to an unknown channel. */
  onRows(rows: readonly Row[]): void
}

/** The events that the page shows, which are not unread. */
export interface ShownEvents {
  /** Returns whether the events of a channel appear on the page as they arrive. */
  covers(channelId: string): boolean
  /** Marks the events on the page as read, unless all channels of the page are covered. */
  mark(): Promise<void>
}

interface ChannelList extends Pick<Channels, 'more'> {
  project: string | undefined
  list: readonly ProjectChannel[]
}

/** The channels that were read last, so that the next page has them at once. */
let latest: ChannelList | undefined
effect(() => {
  if (session.value.kind === 'signed_out') latest = undefined
})

/** The channels of a project, reloaded when they change. None without a project. */
export function useChannels(
  project: string | undefined,
  shown?: RefObject<ShownEvents | undefined>,
): Channels {
  const [read, setRead] = useState(latest)
  const known = useRef(new Set<string>())
  const refreshing = useRef(createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => {}))

  useEffect(() => {
    if (project === undefined) return
    let isOver = false
    const load = async () => {
      // The response may not count the events of notifications that come later.
      const notified = listNotifications()
      await notified
      await shown?.current?.mark()
      const result = await readChannels(project)
      if (isOver || !result.ok) return
      const { total } = result.data
      const items = result.data.items.map(one =>
        shown?.current?.covers(one.id) === true ? { ...one, unread: 0 } : one,
      )
      for (const { id } of items) known.current.add(id)
      const icons = Object.fromEntries(items.map(({ id, icon }) => [id, icon]))
      // Rows without an icon render again when this changes.
      if (JSON.stringify(icons) !== JSON.stringify(channelIcons.peek())) channelIcons.value = icons
      const seen = new Set(items.filter(({ unread }) => unread === 0).map(({ id }) => id))
      void closeSeen(({ channel }) => typeof channel === 'string' && seen.has(channel), notified)
      latest = { project, list: items, more: Math.max(0, total - items.length) }
      setRead(latest)
    }
    const batch = createThrottle(SYSTEM_CLOCK, REFRESH_MS, () => void load())
    refreshing.current = batch
    known.current = new Set()
    batch.trigger()
    // The list that was read before the page was hidden does not count the events since then.
    const reload = () => void (document.hidden || batch.trigger())
    document.addEventListener('visibilitychange', reload)
    return () => {
      isOver = true
      document.removeEventListener('visibilitychange', reload)
      batch.stop()
    }
  }, [project])

  useEffect(() => {
    if (channelChanges.value > 0) refreshing.current.trigger()
  }, [channelChanges.value])

  const refresh = () => refreshing.current.trigger()
  const { list, more } = read && read.project === project ? read : { list: undefined, more: 0 }
  return {
    list,
    more,
    refresh,
    onRows(rows) {
      const isNew = rows.some(({ channelId }) => !known.current.has(channelId))
      // Remembered at once, so that a channel beyond the list causes only one reload.
      for (const { channelId } of rows) known.current.add(channelId)
      if (isNew) refresh()
    },
  }
}
