import type { Account } from '../../../access/sign-in/schema.ts'
import { FailedPart, lazyPages } from '../lazy-page.tsx'
import { loadAfter } from '../load-after.ts'
import { Sparkline } from '../channels/sparkline.tsx'
import { Icon } from './icon.tsx'
import { Popover } from './popover.tsx'
import {
  listAccountLinks,
  listProjectLinks,
  listSettingsLinks,
  NavLinks,
  OVERVIEW,
  SETTINGS,
  toUnread,
  useMedia,
} from './navigation.tsx'
import { toProjectPath } from '../paths.ts'
import type { Channels as LoadedChannels } from '../feed/use-channels.ts'
import { toChannel, toSearchPath, type Search } from '../feed/search.ts'
import { toPlural } from '../locale.ts'

const ViewList = lazyPages(loadAfter, FailedPart)('ViewList')

/** The same breakpoint as in feed.css: wide enough for the navigation next to the page. */
const COLUMN = '(min-width: 60rem)'

interface SidebarOptions {
  account: Account
  /** Undefined if the account has none, or opened none of several. */
  project: string | undefined
  /** The organization of the settings. Default: that of the project. */
  organization?: string | undefined
  channels: Pick<LoadedChannels, 'list' | 'more' | 'alarms'>
  search: Search
  /** The path of the current page, if it is not the feed. */
  at?: string | undefined
}

/**
 * The places of the dashboard, on every page in the same order. The settings are one item at the
 * end, whose place never moves. Channels and views that do not fit scroll above it.
 */
export function Sidebar({ account, project, organization, channels, search, at }: SidebarOptions) {
  const isColumn = useMedia(COLUMN)
  const current = search.channelId
  const all = project && toSearchPath(project, toChannel(search, undefined))
  const here = at ?? (current === undefined ? all : undefined)
  const links = [
    OVERVIEW,
    ...(project === undefined ? [] : listProjectLinks(project)).map(link =>
      link.icon === 'feed' ? { ...link, path: all ?? link.path } : link,
    ),
  ]
  return (
    <div class="sidebar">
      <nav aria-label="Project">
        <NavLinks links={links} current={here} alarms={channels.alarms} />
      </nav>
      {project !== undefined && (
        <Popover id="channels" class="sheet" label="Channels and views" isDrawn={isColumn}>
          {channels.list?.length !== 0 && <h2>Channels</h2>}
          <ul class="channel-list">
            {channels.list === undefined && <ChannelSkeletons />}
            {channels.list?.map(({ id, name, icon, unread, isMuted, today }) => (
              <li key={id}>
                <a
                  href={toSearchPath(project, toChannel(search, id))}
                  aria-current={current === id ? 'page' : undefined}
                >
                  <span class="channel-icon" aria-hidden="true">
                    {icon ?? '#'}
                  </span>
                  <bdi class="channel-name">{name}</bdi>
                  {isMuted && <Muted />}
                  {unread > 0 && (
                    <span class="unread" aria-label={`${toUnread(unread)} unread`}>
                      {toUnread(unread)}
                    </span>
                  )}
                  <Sparkline counts={today} />
                </a>
              </li>
            ))}
            <li class={channels.more > 0 ? undefined : 'phone-only'}>
              <a href={toProjectPath('channels', project)}>
                {channels.more > 0 ? toPlural(channels.more, 'more channel') : 'Manage channels'}
              </a>
            </li>
          </ul>
          {channels.list && <ViewList account={account} project={project} search={search} />}
        </Popover>
      )}
      <button
        type="button"
        class="menu-item"
        popovertarget="settings"
        aria-current={SETTINGS.test(here ?? '') ? 'page' : undefined}
      >
        <Icon name="settings" />
        Settings
      </button>
      <Popover id="settings" class="sheet menu" label="Settings">
        <NavLinks
          title="Settings"
          links={listSettingsLinks(account, project, organization)}
          current={here}
        />
        <NavLinks title="Personal" links={listAccountLinks()} current={here} />
      </Popover>
    </div>
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

function ChannelSkeletons() {
  return [60, 75, 50].map(width => (
    <li key={width} aria-hidden="true">
      <span class="channel-skeleton">
        <span class={`skeleton line w${width}`} />
      </span>
    </li>
  ))
}
