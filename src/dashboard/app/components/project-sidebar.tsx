import { toSearchText } from '../../../events/search-query.ts'
import type { Account } from '../../../accounts/schema.ts'
import { Sparkline } from '../channels/sparkline.tsx'
import { Icon } from './icon.tsx'
import { Sidebar, listProjectLinks, listSettingsLinks, NavLinks } from './navigation.tsx'
import { toProjectPath } from '../paths.ts'
import type { Channels as LoadedChannels } from '../feed/use-channels.ts'
import { EMPTY_SEARCH, parse, toSearchPath, type Search } from '../feed/search.ts'

/** The server stops counting unread events here. */
const MAX_UNREAD = 100

interface ProjectSidebarOptions {
  account: Account
  project: string
  channels: Pick<LoadedChannels, 'list' | 'more'>
  search: Search
  /** The path of the current page, if it is not the feed. */
  at?: string | undefined
}

/** The navigation of a project: its pages, the feeds of its channels, and its settings. */
export function ProjectSidebar({ account, project, channels, search, at }: ProjectSidebarOptions) {
  const current = search.channelId
  const toPath = (channelId?: string) => toSearchPath(project, toChannel(search, channelId))
  const links = listProjectLinks(project).map(link =>
    link.icon === 'feed' ? { ...link, path: toPath() } : link,
  )
  const here = at ?? (current === undefined ? toPath() : undefined)
  return (
    <Sidebar label="Project" current={here ?? (channels.list && current)}>
      <NavLinks links={links} current={here} />
      <h2>Channels</h2>
      <ul class="channel-list">
        {channels.list === undefined && <ChannelSkeletons />}
        {channels.list?.map(({ id, name, icon, unread, isMuted, today }) => (
          <li key={id}>
            <a href={toPath(id)} aria-current={current === id ? 'page' : undefined}>
              <span class="channel-icon" aria-hidden="true">
                {icon ?? '#'}
              </span>
              <bdi class="channel-name">{name}</bdi>
              <Sparkline counts={today} />
              {isMuted && <Muted />}
              {unread > 0 && (
                <span
                  class="unread"
                  aria-label={
                    unread >= MAX_UNREAD ? `More than ${MAX_UNREAD - 1} unread` : `${unread} unread`
                  }
                >
                  {unread >= MAX_UNREAD ? `${MAX_UNREAD - 1}+` : unread}
                </span>
              )}
            </a>
          </li>
        ))}
        {channels.more > 0 && (
          <li>
            <a href={toProjectPath('channels', project)}>
              {channels.more.toLocaleString()} more channels
            </a>
          </li>
        )}
      </ul>
      <NavLinks title="Settings" links={listSettingsLinks(account, project)} />
    </Sidebar>
  )
}

/** Marks a muted channel. */
function Muted() {
  return (
    <span class="muted" title="Muted">
      <Icon name="muted" size={16} />
      <span class="visually-hidden"> muted</span>
    </span>
  )
}

/** The same search in another channel. Channels in its text are removed. */
function toChannel(search: Search, channelId: string | undefined): Search {
  const { filters, issues } = parse({ ...EMPTY_SEARCH, text: search.text }, 0)
  const isKept = issues.length > 0 || filters.channels.is.length === 0
  const channels = { ...filters.channels, is: [] }
  return {
    ...search,
    channelId,
    text: isKept ? search.text : toSearchText({ ...filters, channels }),
  }
}

function ChannelSkeletons() {
  return [60, 75, 50].map(width => (
    <li key={width} aria-hidden="true">
      <span class="channel-skeleton">
        <span class={`skeleton line w${width}`} />
      </span>
    </li>
  ))
}
