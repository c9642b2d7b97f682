import { computed, signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useRef } from 'preact/hooks'
import { isQuestion } from '../components/state.tsx'
import { MINUTE_MS, useQuery, useRoute } from '../components/query.tsx'
import type { ProjectChannel, ProjectChannels } from '../../../log/channels/schema.ts'
import { alarmChanges } from '../live/connection.ts'
import { closeSeen, listNotifications } from '../push/seen.ts'
import { request, type Result } from '../request.ts'
import type { Row } from './log.ts'

/** How many channels are loaded at once. */
export const PAGE_CHANNELS = 100
/** The sidebar shows at most this many channels. */
const MAX_CHANNELS = 200

/** How long unread counts may lag behind. */
const REFRESH_MS = 2_000

/** Counts changes to channels and notification settings. Components that show them reload. */
export const channelChanges = signal(0)

const listChanges = computed(() => channelChanges.value + alarmChanges.value)

/** Counts changes to views. Components that show views reload. */
export const viewChanges = signal(0)

/** The views of a project, reloaded when they change. */
export function useViews(projectId: string) {
  const kept = { when: viewChanges, everyMs: MINUTE_MS, isKept: true }
  return useRoute('GET /api/projects/:projectId/views', { projectId }, kept)
}

/** Channel icons by channel ID, for events without an icon. */
export const channelIcons = signal<Readonly<Record<string, string | null>>>({})

export interface Channels {
  /** Undefined until loaded. Kept when loading again fails. */
  list: readonly ProjectChannel[] | undefined
  /** How many channels are not in `list`. */
  more: number
  /** The number of firing threads that nobody has, and of questions that wait. */
  alarms: number
  /** Call when unread counts may have changed. Refreshes unless the page shows all events. */
  refresh(): void
  /** Refreshes if a row belongs to an unknown channel, or changes what is open. */
  onRows(rows: readonly Row[]): void
}

/** The events that the page shows, which are not unread. */
export interface ShownEvents {
  /** Returns whether the events of a channel, or of all, appear on the page as they arrive. */
  covers(channelId?: string): boolean
  /** Marks the events on the page as read, unless all channels of the page are covered. */
  mark(): Promise<void>
}

/** The order of channels if all are loaded. */
export const byName = (one: ProjectChannel, other: ProjectChannel) =>
  one.name.localeCompare(other.name)

/** Returns whether an event can change what nobody has answered. A step of a run does not. */
export const isDecisive = ({ state, thread }: Pick<Row, 'state' | 'thread'>) =>
  state !== undefined && (state !== 'running' || isQuestion(thread))

/** The channels of a project, reloaded when they change. None without a project. */
export function useChannels(
  project: string | undefined,
  shown?: RefObject<ShownEvents | undefined>,
): Channels {
  const known = useRef(new Set<string>())
  const { data, refresh } = useQuery(
    project && `channels ${project}`,
    () => readList(project ?? '', shown),
    { when: listChanges, pauseMs: REFRESH_MS, everyMs: MINUTE_MS, isKept: true },
  )
  for (const { id } of data?.list ?? []) known.current.add(id)
  return {
    list: data?.list,
    more: data?.more ?? 0,
    alarms: data?.alarms ?? 0,
    refresh() {
      if (!shown?.current?.covers()) refresh()
      else void closeSeen(({ about }) => about?.startsWith(project!))
    },
    onRows(rows) {
      const isNew = rows.some(({ channelId }) => !known.current.has(channelId))
      // Remembered at once, so that a channel beyond the list causes only one reload.
      for (const { channelId } of rows) known.current.add(channelId)
      if (isNew || rows.some(isDecisive)) refresh()
    },
  }
}

async function readList(
  project: string,
  shown: RefObject<ShownEvents | undefined> | undefined,
): Promise<Result<Pick<Channels, 'more' | 'alarms'> & { list: readonly ProjectChannel[] }>> {
  // The response may not count the events of notifications that come later.
  const notified = listNotifications()
  await notified
  await shown?.current?.mark()
  const result = await readChannels(project)
  if (!result.ok) return result
  const { total, alarms } = result.data
  const list = result.data.items.map(one =>
    shown?.current?.covers(one.id) === true ? { ...one, unread: 0 } : one,
  )
  const icons = Object.fromEntries(list.map(({ id, icon }) => [id, icon]))
  // Rows without an icon render again when this changes.
  if (JSON.stringify(icons) !== JSON.stringify(channelIcons.peek())) channelIcons.value = icons
  const seen = new Set(list.filter(({ unread }) => unread === 0).map(({ id }) => id))
  void closeSeen(({ channel }) => channel !== undefined && seen.has(channel), notified)
  return { ok: true, data: { list, more: Math.max(0, total - list.length), alarms } }
}

/**
 * The channels of a project as the sidebar shows them: all by name, or else the newest; `total`
 * counts all.
 */
export async function readChannels(
  projectId: string,
): Promise<Result<Omit<ProjectChannels, 'nextCursor'>>> {
  const items: ProjectChannel[] = []
  for (let cursor: string | undefined; ;) {
    const input = { projectId, limit: PAGE_CHANNELS, cursor }
    const result = await request('GET /api/projects/:projectId/channels', input)
    if (!result.ok) return result
    const { nextCursor, ...counts } = result.data
    items.push(...counts.items)
    if (nextCursor === null) items.sort(byName)
    if (nextCursor === null || items.length >= MAX_CHANNELS)
      return { ok: true, data: { ...counts, items } }
    cursor = nextCursor
  }
}
