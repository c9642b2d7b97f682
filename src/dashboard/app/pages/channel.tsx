import type { ProjectChannel } from '../../../log/channels/schema.ts'
import type { ProjectPageProps } from './props.ts'
import { NotificationSettings } from '../channels/notification-settings.tsx'
import { ArchiveChannel, Retention, EditChannel } from '../channels/channel-settings.tsx'
import { Sparkline } from '../channels/sparkline.tsx'
import { channelChanges } from '../feed/use-channels.ts'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Moment } from '../components/timestamp.tsx'
import { MINUTE_MS, useRoute } from '../components/use-query.ts'
import { toFeedPath, toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'

/** A channel: its description, notification settings, retention and archive state. */
export default function ChannelPage({ account, project, channel: id = '' }: ProjectPageProps) {
  const query = useRoute(
    'GET /api/projects/:projectId/channels/:channelId',
    { projectId: project, channelId: id },
    { when: channelChanges, everyMs: MINUTE_MS },
  )
  return (
    <ProjectLayout
      account={account}
      project={project}
      at="channels"
      title={query.data?.name ?? 'Channel'}
    >
      <p>
        <a class="text-link" href={toProjectPath('channels', project)}>
          Channels
        </a>
      </p>
      {query.failure?.code === 'not_found' ? (
        <div class="empty-state">
          <h1>Channel not found</h1>
          <p>It was deleted, or the link is incomplete. Copy all of the link.</p>
        </div>
      ) : (
        <Loaded query={query}>
          {channel => (
            <div class="settings">
              <About channel={channel} />
              <div class="actions">
                <a class="quiet-button" href={toFeedPath(project, id)}>
                  View events
                </a>
                {isAllowed(account, project, 'member') && (
                  <EditChannel key={id} project={project} channel={channel} />
                )}
              </div>
              <section class="section" aria-label="My notifications">
                <NotificationSettings
                  key={id}
                  project={project}
                  channel={id}
                  hint="Only for you, on all your devices"
                />
              </section>
              <Retention
                key={id}
                project={project}
                channel={channel}
                mayChange={isAllowed(account, project, 'admin')}
              />
              {isAllowed(account, project, 'member') && (
                <ArchiveChannel project={project} channel={channel} />
              )}
            </div>
          )}
        </Loaded>
      )}
    </ProjectLayout>
  )
}

function About({ channel }: { channel: ProjectChannel }) {
  const { name, icon, description, isArchived, today, lastEventAt, createdAt } = channel
  return (
    <>
      <h1 class="page-title">
        {icon !== null && <span aria-hidden="true">{icon} </span>}
        <bdi>{name}</bdi> {isArchived && <span class="badge">Archived</span>}
      </h1>
      {description !== null && (
        <p class="page-lead">
          <bdi>{description}</bdi>
        </p>
      )}
      <dl class="counts-list">
        <div>
          <dt>Last 24 hours</dt>
          <dd>
            {today.reduce((sum, count) => sum + count).toLocaleString()}{' '}
            <Sparkline counts={today} />
          </dd>
        </div>
        {lastEventAt !== null && (
          <div>
            <dt>Last event</dt>
            <dd>
              <Moment at={lastEventAt} />
            </dd>
          </div>
        )}
        <div>
          <dt>Created</dt>
          <dd>
            <Moment at={createdAt} />
          </dd>
        </div>
      </dl>
    </>
  )
}
