import { useLocation } from 'preact-iso'
import type { ProjectPageProps } from './props.ts'
import { Timestamp } from '../components/timestamp.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { SearchForm } from '../components/search-form.tsx'
import { toUserPath, toUsersPath } from '../paths.ts'
import { readUsers, type ListedUser } from '../users/api.ts'
import { usePages } from '../components/use-pages.ts'

const MOST_SHOWN = 4

/** The people whom the applications of a project know, and the search among them. */
export default function UsersPage({ account, project }: ProjectPageProps) {
  const { query } = useLocation()
  const search = query['search']?.trim() ?? ''
  const { items, isReading, failure, hasMore, readMore } = usePages(
    `${project} ${search}`,
    cursor => readUsers(project, search, cursor),
  )
  const toPath = (text: string) =>
    text === ''
      ? toUsersPath(project)
      : `${toUsersPath(project)}?${new URLSearchParams({ search: text })}`

  return (
    <ProjectLayout account={account} project={project} at="users" title="People">
      <h1 class="page-title">People</h1>
      <SearchForm
        label="Search people"
        placeholder="Id, alias, or words in properties"
        text={search}
        toPath={toPath}
      />
      <ul class="users" aria-busy={isReading}>
        {items.map(user => (
          <Person key={user.id} project={project} user={user} />
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
          <h2>{search === '' ? 'Nobody yet' : 'Nobody found'}</h2>
          {search === '' ? (
            <p>
              Who is named with <code>POST /v1/identify</code> appears here.{' '}
              <a href="/docs/sending-events#identify-users">How to identify users</a>
            </p>
          ) : (
            <p>
              Nobody has an id or alias that begins so, or these words in their properties.{' '}
              <a href={toUsersPath(project)}>Everybody</a>
            </p>
          )}
        </div>
      )}
      {hasMore && !isReading && !failure && (
        <button type="button" class="button" onClick={readMore}>
          Show more
        </button>
      )}
    </ProjectLayout>
  )
}

function Person({ project, user }: { project: string; user: ListedUser }) {
  const { userId, aliases, properties, updatedAt } = user
  const path = toUserPath(project, userId)
  const shown = Object.entries(properties ?? {}).filter(([, value]) => typeof value !== 'object')
  return (
    <li>
      <div class="row-main">
        <h2>
          {path === undefined ? (
            <bdi>{userId}</bdi>
          ) : (
            <a href={path}>
              <bdi>{userId}</bdi>
            </a>
          )}
        </h2>
        <p class="row-meta">
          {aliases.slice(0, MOST_SHOWN).map(alias => (
            <bdi key={alias}>{alias}</bdi>
          ))}
          {shown.slice(0, MOST_SHOWN).map(([name, value]) => (
            <bdi key={`${name}:`} class="tag">
              {name}: {String(value)}
            </bdi>
          ))}
        </p>
      </div>
      <Timestamp atMs={Date.parse(updatedAt)} hasDate />
    </li>
  )
}
