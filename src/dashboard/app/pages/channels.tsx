import { useLocation } from 'preact-iso'
import type { ProjectChannel } from '../../../channels/schema.ts'
import type { ProjectPageProps } from './props.ts'
import { NotificationSettings } from '../channels/notification-settings.tsx'
import { Sparkline } from '../channels/sparkline.tsx'
import { readChannelPage } from '../feed/api.ts'
import { channelChanges } from '../feed/use-channels.ts'
import { ProjectLayout } from '../components/layout.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { SearchForm } from '../components/search-form.tsx'
import { toChannelPath, toProjectPath } from '../paths.ts'
import { usePages } from '../components/use-pages.ts'

/** All channels of a project, and what the reader hears of them. */
export default function ChannelsPage({ account, project }: ProjectPageProps) {
  const { query } = useLocation()
  const search = query['search']?.trim() ?? ''
  const hasArchived = query['archived'] === 'true'
  const wanted = { ...(search && { search }), ...(hasArchived && { archived: 'true' }) }
  const toPath = (some: Record<string, string>) => {
    const told = new URLSearchParams(Object.entries(some).filter(([, value]) => value !== ''))
    return `${toProjectPath('channels', project)}${told.size > 0 ? `?${told}` : ''}`
  }
  const { items, isReading, failure, hasMore, readMore } = usePages(
    `${toPath(wanted)} ${channelChanges.value}`,
    cursor => readChannelPage(project, wanted, cursor),
  )
  return (
    <ProjectLayout account={account} project={project} at="channels" title="Channels">
      <h1 class="page-title">Channels</h1>
      <NotificationSettings project={project} hint="Where a channel has no setting of its own" />
      <SearchForm
        label="Search channels"
        placeholder="A part of the name"
        text={search}
        toPath={text => toPath({ ...wanted, search: text })}
      />
      <div class="settings">
        <ul class="items" aria-busy={isReading}>
          {items.map(channel => (
            <Item key={channel.id} project={project} channel={channel} />
          ))}
        </ul>
        {failure && <ErrorNotice failure={failure} onRetry={readMore} />}
        {isReading && (
          <p class="note" role="status">
            Reading …
          </p>
        )}
        {!isReading && !failure && items.length === 0 && (
          <div class="empty-state">
            <h2>{search === '' ? 'No channel yet' : 'No channel found'}</h2>
            {search === '' ? (
              <p>An event makes its channel when it is the first one there.</p>
            ) : (
              <p>
                No name has this in it. <a href={toPath({})}>All channels</a>
              </p>
            )}
          </div>
        )}
        {hasMore && !isReading && !failure && (
          <button type="button" class="button" onClick={readMore}>
            Show more
          </button>
        )}
        <p>
          <a class="text-link" href={toPath({ search, archived: hasArchived ? '' : 'true' })}>
            {hasArchived ? 'Without archived ones' : 'With archived ones'}
          </a>
        </p>
      </div>
    </ProjectLayout>
  )
}

function Item({ project, channel }: { project: string; channel: ProjectChannel }) {
  const { id, name, icon, description, isArchived, isMuted, today, lastEventAt } = channel
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
        <p class="item-details">
          {description !== null && (
            <>
              <bdi>{description}</bdi> ·{' '}
            </>
          )}
          {count.toLocaleString()} in 24 hours
          {lastEventAt !== null && (
            <>
              {' '}
              · <Timestamp atMs={Date.parse(lastEventAt)} hasDate />
            </>
          )}
        </p>
      </div>
      {isArchived && <span class="badge">Archived</span>}
      {isMuted && <span class="badge">Muted</span>}
      <Sparkline counts={today} />
    </li>
  )
}
