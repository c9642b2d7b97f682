import type { ProjectPageProps } from './props.ts'
import { JsonTree } from '../event/json-tree.tsx'
import { EMPTY_SEARCH, toSearchPath, toTermText, type Search } from '../feed/search.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { Moment } from '../components/timestamp.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { Aliases } from '../users/aliases.tsx'
import { Avatar } from '../users/avatar.tsx'
import { readUserName } from '../users/names.ts'
import type { Data } from '../routes.ts'
import { useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { FeedList } from '../feed/feed-list.tsx'
import { LivePill } from '../feed/live-pill.tsx'
import { useFeed } from '../feed/use-feed.ts'
import { usePause } from '../feed/use-pause.ts'
import { Section } from '../components/item.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { toPlural } from '../locale.ts'

const MAX_COUNTED_EVENTS = 10_000

/** A user: counts, properties, aliases and events. */
export default function UserPage({ account, project, user: reference = '' }: ProjectPageProps) {
  const query = useRoute('GET /api/projects/:projectId/users/:userId', {
    projectId: project,
    userId: reference,
  })
  const toName = (userId: string) => readUserName(project, userId) ?? userId
  const mayErase = isAllowed(account, project, 'admin')
  return (
    <ProjectLayout
      account={account}
      project={project}
      at="users"
      list="Users"
      title={query.data ? toName(query.data.userId) : 'Users'}
    >
      <Loaded
        query={query}
        missing={{
          title: 'User not found',
          text: 'No user has this ID or alias, and no stored event is about it.',
        }}
      >
        {user => (
          <>
            <h1 class="page-title">
              <Avatar userId={user.userId} name={toName(user.userId)} />
              <bdi>{toName(user.userId)}</bdi>
            </h1>
            {toName(user.userId) !== user.userId && (
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
                onChanged={() => void query.refetch()}
              />
            )}
            <UserTimeline project={project} userId={user.userId} />
            {mayErase && <EraseUser project={project} userId={user.userId} />}
          </>
        )}
      </Loaded>
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
              <Moment at={firstSeenAt} />
            </dd>
          </div>
        )}
        {lastSeenAt !== null && (
          <div>
            <dt>Last seen</dt>
            <dd>
              <Moment at={lastSeenAt} />
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

/** The live feed of a user's events. */
function UserTimeline({ project, userId }: { project: string; userId: string }) {
  const text = toTermText('user', userId)
  return (
    <Section id="timeline" title="Events">
      {text === undefined ? (
        <p class="note">This user ID cannot be searched for, so the events are not listed here.</p>
      ) : (
        <Events project={project} search={{ ...EMPTY_SEARCH, text }} />
      )}
    </Section>
  )
}

function Events({ project, search }: { project: string; search: Search }) {
  const { route } = useLocation()
  const list = useRef<HTMLElement>(null)
  const feed = useFeed({ project, search })
  const { resume } = usePause(feed, { list, isOpen: false })
  return (
    <>
      <LivePill feed={feed} onResume={resume} />
      <FeedList
        feed={feed}
        list={list}
        project={project}
        search={search}
        onOpen={id => route(toSearchPath(project, search, id))}
        empty={<p class="note">No stored event is about this user.</p>}
      />
    </>
  )
}

/** Erases a user permanently. */
function EraseUser({ project, userId }: { project: string; userId: string }) {
  const { route } = useLocation()
  return (
    <Section id="erase" title="Erase">
      <p class="note">Deletes the properties and aliases, and removes the user from all events.</p>
      <ConfirmButton
        action="Erase this user"
        title="Erase"
        name={userId}
        lead="The events remain, but no longer show who they are about. This cannot be undone."
        yes="Erase permanently"
        send={() =>
          request('DELETE /api/projects/:projectId/users/:userId', { projectId: project, userId })
        }
        onDone={({ events, exportedMonths }) => {
          const files = exportedMonths ? ` Also in exports of ${exportedMonths}.` : ''
          showToast({
            message: `User erased and removed from ${toPlural(events, 'event')}.${files}`,
          })
          route(toProjectPath('users', project), true)
        }}
      />
    </Section>
  )
}
