import { parseSearch } from '../../../log/events/search-query.ts'
import { toSearchText } from '../../../log/events/search-text.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ErrorBoundary } from 'preact-iso'
import { lazyPages } from '../lazy-page.tsx'
import { Sparkline } from '../channels/sparkline.tsx'
import { Icon } from './icon.tsx'
import {
  listAccountLinks,
  listOverviewLinks,
  listProjectLinks,
  listSettingsLinks,
  NavLinks,
  Sidebar,
} from './navigation.tsx'
import { toProjectPath } from '../paths.ts'
import type { Channels as LoadedChannels } from '../feed/use-channels.ts'
import { toSearchPath, withoutPart, type Search } from '../feed/search.ts'
import { toPlural } from '../plural.ts'

const ViewList = lazyPages(() => import('../views/view-list.tsx'))(all => all.ViewList)

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
    <Sidebar isSheet label="Project" current={here ?? (channels.list && current)}>
      <NavLinks links={[...listOverviewLinks(account), ...links]} current={here} />
      <ErrorBoundary>
        <ViewList account={account} project={project} search={search} />
      </ErrorBoundary>
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
              {isMuted && <Muted />}
              {unread > 0 && (
                <span
                  class="unread"
                  aria-label={
                    unread >= MAX_UNREAD
                      ? `More than ${(MAX_UNREAD - 1).toLocaleString()} unread`
                      : `${unread.toLocaleString()} unread`
                  }
                >
                  {unread >= MAX_UNREAD ? `${MAX_UNREAD - 1}+` : unread}
                </span>
              )}
              <Sparkline counts={today} />
            </a>
          </li>
        ))}
        {channels.more > 0 && (
          <li>
            <a href={toProjectPath('channels', project)}>
              {toPlural(channels.more, 'more channel')}
            </a>
          </li>
        )}
      </ul>
      <NavLinks title="Settings" links={listSettingsLinks(account, project)} />
      <NavLinks title="Personal" links={listAccountLinks()} />
    </Sidebar>
  )
}

/** Marks a muted channel. */
function Muted() {
  return (
    <span class="muted" title="Muted">
      <Icon name="muted" size={16} />
      <span class="visually-hidden"> Muted</span>
    </span>
  )
}

/** The same search in another channel. Channels in its text are removed. */
function toChannel(search: Search, channelId: string | undefined): Search {
  const { filters, parts, isAlternative } = parseSearch(search.text)
  const { channels } = filters
  const named = parts.filter(({ term }) => term?.name === 'channel' && !term.isExcluded)
  if (channels.is.length === 0) return { ...search, channelId }
  // Alternatives can name channels, too: (channel:a OR channel:b)
  const text =
    isAlternative || named.length < channels.is.length
      ? toSearchText({ ...filters, channels: { ...channels, is: [] } })
      : named.reduceRight(withoutPart, search.text)
  return { ...search, channelId, text }
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
