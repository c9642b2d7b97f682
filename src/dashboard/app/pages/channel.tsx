import type { ProjectChannel } from '../../../channels/schema.ts'
import type { ProjectPage } from './props.ts'
import { Bell } from '../channels/bell.tsx'
import { readChannel } from '../channels/calls.ts'
import { Archive, Keeping, Names } from '../channels/settings.tsx'
import { Spark } from '../channels/spark.tsx'
import { useOwn } from '../channels/use-own.ts'
import { ProjectFrame } from '../parts/frame.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Moment } from '../parts/moment.tsx'
import { toFeedPath, toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'

/** A channel: what it is, what the reader hears of it, and how it is kept. */
export default function ChannelPage({ account, project, channel: id = '' }: ProjectPage) {
  const asked = useOwn(`${project} ${id}`, () => readChannel(project, id))
  return (
    <ProjectFrame
      account={account}
      project={project}
      at="channels"
      title={asked.data?.name ?? 'Channel'}
    >
      <p>
        <a class="back" href={toProjectPath('channels', project)}>
          Channels
        </a>
      </p>
      {asked.failure?.code === 'not_found' ? (
        <div class="nothing">
          <h1>No such channel</h1>
          <p>It has gone, or the link is not whole.</p>
        </div>
      ) : (
        <Loaded of={asked}>
          {channel => (
            <div class="settings">
              <About project={project} channel={channel} />
              {isAllowed(account, project, 'member') && (
                <Names key={id} project={project} channel={channel} />
              )}
              <section class="part" aria-label="My notifications">
                <Bell
                  key={id}
                  project={project}
                  channel={id}
                  hint="Yours alone, on all your devices"
                />
              </section>
              <Keeping
                key={id}
                project={project}
                channel={channel}
                mayChange={isAllowed(account, project, 'admin')}
              />
              {isAllowed(account, project, 'member') && (
                <Archive project={project} channel={channel} />
              )}
            </div>
          )}
        </Loaded>
      )}
    </ProjectFrame>
  )
}

function About({ project, channel }: { project: string; channel: ProjectChannel }) {
  const { id, name, icon, description, isArchived, today, lastEventAt, createdAt } = channel
  return (
    <>
      <h1 class="page-title">
        {icon !== null && <span aria-hidden="true">{icon} </span>}
        <bdi>{name}</bdi> {isArchived && <span class="badge">Archived</span>}
      </h1>
      {description !== null && (
        <p class="lead-in">
          <bdi>{description}</bdi>
        </p>
      )}
      <dl class="counts-list">
        <div>
          <dt>Last 24 hours</dt>
          <dd>
            {today.reduce((sum, count) => sum + count).toLocaleString()} <Spark counts={today} />
          </dd>
        </div>
        {lastEventAt !== null && (
          <div>
            <dt>Last event</dt>
            <dd>
              <Moment atMs={Date.parse(lastEventAt)} isFar />
            </dd>
          </div>
        )}
        <div>
          <dt>Since</dt>
          <dd>
            <Moment atMs={Date.parse(createdAt)} isFar />
          </dd>
        </div>
      </dl>
      <p>
        <a class="back" href={toFeedPath(project, id)}>
          Its events
        </a>
      </p>
    </>
  )
}
