import { useLocation } from 'preact-iso'
import type { ProjectChannel } from '../../../channels/schema.ts'
import type { ProjectPage } from './props.ts'
import { Bell } from '../channels/bell.tsx'
import { Spark } from '../channels/spark.tsx'
import { readChannelPage } from '../feed/calls.ts'
import { channelDeeds } from '../feed/use-channels.ts'
import { ProjectFrame } from '../parts/frame.tsx'
import { Moment } from '../parts/moment.tsx'
import { Trouble } from '../parts/page.tsx'
import { SearchForm } from '../parts/search-form.tsx'
import { toChannelPath, toProjectPath } from '../paths.ts'
import { usePages } from '../users/use-pages.ts'

/** All channels of a project, and what the reader hears of them. */
export default function ChannelsPage({ account, project }: ProjectPage) {
  const { query } = useLocation()
  const search = query['search']?.trim() ?? ''
  const hasArchived = query['archived'] === 'true'
  const wanted = { ...(search && { search }), ...(hasArchived && { archived: 'true' }) }
  const toPath = (some: Record<string, string>) => {
    const told = new URLSearchParams(Object.entries(some).filter(([, value]) => value !== ''))
    return `${toProjectPath('channels', project)}${told.size > 0 ? `?${told}` : ''}`
  }
  const { items, isReading, failure, hasMore, readMore } = usePages(
    `${toPath(wanted)} ${channelDeeds.value}`,
    cursor => readChannelPage(project, wanted, cursor),
  )
  return (
    <ProjectFrame account={account} project={project} at="channels" title="Channels">
      <h1 class="page-title">Channels</h1>
      <Bell project={project} hint="Where a channel has no setting of its own" />
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
        {failure && <Trouble failure={failure} onRetry={readMore} />}
        {isReading && (
          <p class="aside" role="status">
            Reading …
          </p>
        )}
        {!isReading && !failure && items.length === 0 && (
          <div class="nothing">
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
          <a class="back" href={toPath({ search, archived: hasArchived ? '' : 'true' })}>
            {hasArchived ? 'Without archived ones' : 'With archived ones'}
          </a>
        </p>
      </div>
    </ProjectFrame>
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
      <div class="item-what">
        <a class="back" href={toChannelPath(project, id)}>
          <bdi>{name}</bdi>
        </a>
        <p class="item-about">
          {description !== null && (
            <>
              <bdi>{description}</bdi> ·{' '}
            </>
          )}
          {count.toLocaleString()} in 24 hours
          {lastEventAt !== null && (
            <>
              {' '}
              · <Moment atMs={Date.parse(lastEventAt)} isFar />
            </>
          )}
        </p>
      </div>
      {isArchived && <span class="badge">Archived</span>}
      {isMuted && <span class="badge">Muted</span>}
      <Spark counts={today} />
    </li>
  )
}
