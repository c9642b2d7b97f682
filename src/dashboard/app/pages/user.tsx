import type { ProjectPageProps } from './props.ts'
import { JsonTree } from '../event/json-tree.tsx'
import { EMPTY_SEARCH, toSearchPath } from '../feed/search.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { useRoute } from '../components/use-query.ts'
import { toUsersPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { Aliases } from '../users/aliases.tsx'
import { Avatar } from '../users/avatar.tsx'
import { readUserName } from '../users/names.ts'
import type { Data } from '../routes.ts'
import { EraseUser } from '../users/erase.tsx'
import { UserTimeline } from '../users/timeline.tsx'

const MAX_COUNTED_EVENTS = 10_000

/** A user: counts, properties, aliases and events. */
export default function UserPage({ account, project, user: reference = '' }: ProjectPageProps) {
  const {
    data: user,
    failure,
    refetch,
  } = useRoute('GET /api/projects/:projectId/users/:userId', {
    projectId: project,
    userId: reference,
  })
  const name = user && (readUserName(project, user.userId) ?? user.userId)
  const mayErase = isAllowed(account, project, 'admin')
  return (
    <ProjectLayout account={account} project={project} at="users" title={name ?? 'Users'}>
      <p>
        <a class="text-link" href={toUsersPath(project)}>
          Users
        </a>
      </p>
      {failure?.code === 'not_found' && (
        <div class="empty-state">
          <h1>User not found</h1>
          <p>No user has this ID or alias, and no stored event is about it.</p>
        </div>
      )}
      {failure && failure.code !== 'not_found' && (
        <ErrorNotice failure={failure} onRetry={() => void refetch()} />
      )}
      {!user && !failure && (
        <div role="status" aria-label="Loading">
          <span class="skeleton line" />
        </div>
      )}
      {user && name !== undefined && (
        <>
          <h1 class="page-title">
            <Avatar userId={user.userId} name={name} />
            <bdi>{name}</bdi>
          </h1>
          {name !== user.userId && (
            <p class="page-lead user-id">
              <bdi>{user.userId}</bdi>
            </p>
          )}
          <Counts project={project} user={user} />
          {user.properties !== null && <Properties properties={user.properties} />}
          {user.id !== null && (
            <Aliases
              project={project}
              user={user}
              mayEdit={isAllowed(account, project, 'member')}
              onChanged={() => void refetch()}
            />
          )}
          <UserTimeline project={project} userId={user.userId} />
          {mayErase && <EraseUser project={project} userId={user.userId} />}
        </>
      )}
    </ProjectLayout>
  )
}

type User = Data<'GET /api/projects/:projectId/users/:userId'>

function Counts({ project, user }: { project: string; user: User }) {
  const { events, firstSeenAt, lastSeenAt, channels } = user
  return (
    <>
      <dl class="counts-list">
        <div>
          <dt>Events</dt>
          <dd>
            {events >= MAX_COUNTED_EVENTS
              ? `${MAX_COUNTED_EVENTS.toLocaleString()} or more`
              : events.toLocaleString()}
          </dd>
        </div>
        {firstSeenAt !== null && (
          <div>
            <dt>First seen</dt>
            <dd>
              <Timestamp atMs={Date.parse(firstSeenAt)} hasDate />
            </dd>
          </div>
        )}
        {lastSeenAt !== null && (
          <div>
            <dt>Last seen</dt>
            <dd>
              <Timestamp atMs={Date.parse(lastSeenAt)} hasDate />
            </dd>
          </div>
        )}
      </dl>
      {channels.length > 0 && (
        <ul class="chips" aria-label="Channels with the most events">
          {channels.map(({ id, name, icon, events }) => (
            <li key={id}>
              <a
                class="chip chip-link"
                href={toSearchPath(project, { ...EMPTY_SEARCH, channelId: id })}
              >
                {icon !== null && <span aria-hidden="true">{icon} </span>}
                <bdi>{name}</bdi> <span class="chip-count">{events.toLocaleString()}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function Properties({ properties }: { properties: Record<string, unknown> }) {
  return (
    <section class="section" aria-labelledby="properties">
      <div class="metadata-top">
        <h2 id="properties">Properties</h2>
        <CopyButton label="Copy" toText={() => JSON.stringify(properties, null, 2)} />
      </div>
      {Object.keys(properties).length > 0 ? (
        <JsonTree value={properties} />
      ) : (
        <p class="note">No properties</p>
      )}
    </section>
  )
}
