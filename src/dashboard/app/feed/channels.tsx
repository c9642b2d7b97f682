import type { ProjectChannel } from '../../../channels/schema.ts'
import { toSearchText } from '../../../events/search.ts'
import { toUsersPath } from '../paths.ts'
import { EVERYTHING, parse, toSearchPath, type Search } from './search.ts'

/** The server counts no further. */
const MANY = 100

interface ChannelsOptions {
  project: string
  channels: readonly ProjectChannel[] | undefined
  search: Search
  /** Where the reader is, if not among the events. */
  at?: 'users'
}

/** The channels of a project, each a way to look at it alone. */
export function Channels({ project, channels, search, at }: ChannelsOptions) {
  const current = search.channelId
  const toPath = (channelId?: string) => toSearchPath(project, toChannel(search, channelId))
  return (
    <nav class="channels" aria-label="Project">
      <ul class="places">
        <li>
          <a
            href={toPath()}
            aria-current={at === undefined && current === undefined ? 'page' : undefined}
          >
            <svg class="channel-icon" viewBox="0 0 24 24" aria-hidden="true">
              <path d="M2 9c3.3-4 6.7-4 10 0s6.7 4 10 0M2 16c3.3-4 6.7-4 10 0s6.7 4 10 0" />
            </svg>
            <span class="channel-name">All events</span>
          </a>
        </li>
        <li>
          <a href={toUsersPath(project)} aria-current={at === 'users' ? 'page' : undefined}>
            <svg class="channel-icon" viewBox="0 0 24 24" aria-hidden="true">
              <circle cx="12" cy="8" r="4" />
              <path d="M4 21c.6-4.6 3.6-7 8-7s7.400 2.400 8 7" />
            </svg>
            <span class="channel-name">People</span>
          </a>
        </li>
      </ul>
      <h2>Channels</h2>
      <ul>
        {channels === undefined && <ChannelSkeletons />}
        {channels?.map(({ id, name, icon, unread }) => (
          <li key={id}>
            <a href={toPath(id)} aria-current={current === id ? 'page' : undefined}>
              <span class="channel-icon" aria-hidden="true">
                {icon ?? '#'}
              </span>
              <bdi class="channel-name">{name}</bdi>
              {unread > 0 && (
                <span
                  class="unread"
                  aria-label={unread >= MANY ? 'Many unread' : `${unread} unread`}
                >
                  {unread >= MANY ? `${MANY - 1}+` : unread}
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}

/** The same search in another channel; those that its text names give way. */
function toChannel(search: Search, channelId: string | undefined): Search {
  const { filters, issues } = parse({ ...EVERYTHING, text: search.text }, 0)
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
      <span class="channel-waiting">
        <span class={`skeleton line w${width}`} />
      </span>
    </li>
  ))
}
