import { toVisible } from '../../../base/display-text.ts'
import { useLocation } from 'preact-iso'
import type { ProjectPageProps } from './props.ts'
import { Moment } from '../components/timestamp.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { SearchForm } from '../components/search-form.tsx'
import { isObject, toMetadataText } from '../../../log/events/metadata-values.ts'
import { toProjectPath } from '../paths.ts'
import { UserName } from '../users/avatar.tsx'
import { readUserName } from '../users/names.ts'
import type { Item } from '../routes.ts'

const MAX_SHOWN = 4

/** The users of a project, with a search. */
export default function UsersPage({ account, project }: ProjectPageProps) {
  const { query } = useLocation()
  const search = query['search']?.trim() ?? ''
  const pages = usePages('GET /api/projects/:projectId/users', {
    projectId: project,
    search: search || undefined,
  })
  const path = toProjectPath('users', project)
  const toPath = (text: string) =>
    text === '' ? path : `${path}?${new URLSearchParams({ search: text })}`

  return (
    <ProjectLayout account={account} project={project} at="users" title="Users">
      <SearchForm
        label="Search users"
        placeholder="Search by ID, alias or property"
        text={search}
        toPath={toPath}
      />
      <PagedList
        pages={pages}
        className="items users"
        empty={
          <div class="empty-state">
            <h2>{search === '' ? 'No users yet' : 'No users found'}</h2>
            {search === '' ? (
              <p>
                Users appear here after <code>POST /v1/identify</code>.{' '}
                <a href="/docs/sending-events#identify-users">How to identify users</a>
              </p>
            ) : (
              <p>
                No user has these words in the ID, an alias or the properties.{' '}
                <a href={path}>Show all users</a>
              </p>
            )}
          </div>
        }
      >
        {user => <UserItem key={user.id} project={project} user={user} />}
      </PagedList>
    </ProjectLayout>
  )
}

function UserItem({
  project,
  user,
}: {
  project: string
  user: Item<'GET /api/projects/:projectId/users'>
}) {
  const { userId, aliases, properties, updatedAt } = user
  const name = readUserName(project, userId) ?? userId
  const ids = [userId, ...aliases].filter(id => id !== name)
  const shown = Object.entries(properties ?? {}).filter(
    ([, value]) =>
      value !== null && !isObject(value) && ![name, ...ids].includes(toMetadataText(value)),
  )
  return (
    <li>
      <div class="user-main">
        <h2>
          <UserName project={project} userId={userId} />
        </h2>
        {/* Until the name is read, the ID is above. Its line stays empty so that nothing moves. */}
        <p class="item-details">
          {ids.slice(0, MAX_SHOWN).map(id => (
            <bdi key={id}>{id}</bdi>
          ))}
        </p>
      </div>
      <p class="row-meta">
        {shown.slice(0, MAX_SHOWN).map(([name, value]) => (
          <bdi key={name} class="tag">
            {name}: {toVisible(toMetadataText(value))}
          </bdi>
        ))}
      </p>
      <span class="user-time">
        <Moment word="updated" at={updatedAt} />
      </span>
    </li>
  )
}
