import { Details } from '../components/item.tsx'
import { useLocation } from 'preact-iso'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import type { ProjectPageProps } from './props.ts'
import { NotificationSettings } from '../channels/notification-settings.tsx'
import { Sparkline } from '../channels/sparkline.tsx'
import { byName, channelChanges, PAGE_CHANNELS } from '../feed/use-channels.ts'
import { ProjectLayout } from '../components/layout.tsx'
import { Moment } from '../components/timestamp.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { SearchForm } from '../components/search-form.tsx'
import { toChannelPath, toProjectPath } from '../paths.ts'
import { MINUTE_MS } from '../components/query.tsx'
import { toSince } from '../time-texts.ts'
import { toPlural } from '../locale.ts'
import { Icon } from '../components/icon.tsx'
import { switchMute } from '../channels/api.ts'

/** All channels of a project, with the default notification settings. */
export default function ChannelsPage({ account, project }: ProjectPageProps) {
  const { query } = useLocation()
  const search = query['search']?.trim() ?? ''
  const hasArchived = query['archived'] === 'true'
  const wanted = { ...(search && { search }), ...(hasArchived && { archived: 'true' as const }) }
  const toPath = (some: Record<string, string>) => {
    const query = new URLSearchParams(Object.entries(some).filter(([, value]) => value !== ''))
    return `${toProjectPath('channels', project)}${query.size > 0 ? `?${query}` : ''}`
  }
  const pages = usePages(
    'GET /api/projects/:projectId/channels',
    { projectId: project, ...wanted, limit: PAGE_CHANNELS },
    { when: channelChanges, everyMs: MINUTE_MS },
  )
  const [first] = pages.items
  // More than one page is listed as it is loaded, so that nothing moves.
  const isWhole = pages.data && pages.data.total <= PAGE_CHANNELS
  const items = isWhole ? pages.items.toSorted(byName) : pages.items
  return (
    <ProjectLayout account={account} project={project} at="channels" title="Channels">
      <SearchForm
        label="Search channels"
        placeholder="Search by name"
        text={search}
        toPath={text => toPath({ ...wanted, search: text })}
      />
      <div class="settings">
        {first && <p class="hint">Events {toSince(first.today.length)}</p>}
        <PagedList
          pages={{ ...pages, items }}
          empty={
            <div class="empty-state">
              <h2>{search === '' ? 'No channels yet' : 'No channels found'}</h2>
              {search === '' ? (
                <p>A channel is created by the first event that is sent to it.</p>
              ) : (
                <p>
                  No channel name contains this text. <a href={toPath({})}>Show all channels</a>
                </p>
              )}
            </div>
          }
        >
          {channel => <Item key={channel.id} project={project} channel={channel} />}
        </PagedList>
        <p>
          <a class="text-link" href={toPath({ search, archived: hasArchived ? '' : 'true' })}>
            {hasArchived ? 'Hide archived' : 'Show archived'}
          </a>
        </p>
      </div>
      {(pages.data || pages.failure) && (
        <NotificationSettings project={project} hint="The default for all channels" />
      )}
    </ProjectLayout>
  )
}

function Item({ project, channel }: { project: string; channel: ProjectChannel }) {
  const { id, name, icon, description, isArchived, today, lastEventAt } = channel
  const count = today.reduce((sum, one) => sum + one)
  return (
    <li>
      <span class="channel-icon" aria-hidden="true">
        {icon ?? '#'}
      </span>
      <div class="item-main">
        <a class="text-link" href={toChannelPath(project, id)}>
          <bdi>{name}</bdi>
        </a>
        <Details>
          {description !== null && <bdi>{description}</bdi>}
          {lastEventAt !== null && <Moment word="last" at={lastEventAt} />}
          {toPlural(count, 'event')}
        </Details>
      </div>
      {isArchived && <span class="badge">Archived</span>}
      <Sparkline counts={today} />
      <ChannelBell project={project} channel={channel} />
    </li>
  )
}

interface BellOptions {
  project: string
  channel: ProjectChannel
}

/** Turns the signed-in member's notifications of a channel on and off. */
function ChannelBell({ project, channel }: BellOptions) {
  const { name, isMuted } = channel
  return (
    <button
      type="button"
      class="bell"
      aria-pressed={!isMuted}
      aria-label={`Notifications from ${name}`}
      title={isMuted ? 'Muted' : 'Notifications on'}
      onClick={() => void switchMute(project, channel)}
    >
      <Icon name={isMuted ? 'muted' : 'notifications'} />
    </button>
  )
}
