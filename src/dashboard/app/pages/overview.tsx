import type { Account } from '../../../access/sign-in/schema.ts'
import type { OverviewProject, Overview } from '../../../log/overview/schema.ts'
import { Layout } from '../components/layout.tsx'
import { Loaded, MINUTE_MS, useRoute, type Query } from '../components/query.tsx'
import { ConnectionPill } from '../feed/live-pill.tsx'
import { toPlural } from '../locale.ts'
import { isUrgent, ProjectCard } from '../overview/project-card.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { isAtLeast } from '../session.ts'
import type { AccountPageProps } from './props.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { BROWSER, watchBrowser } from '../live/browser.ts'
import { type Heads, createLiveSocket } from '../live/socket.ts'
import type { ConnectionState } from '../live/pill.ts'

/** All projects of the account: new events, unusual activity and failed deliveries. */
export default function OverviewPage({ account }: AccountPageProps) {
  const { query, heads, state, reconnect } = useOverview()
  const title = 'Overview'
  const own = account.organizations.find(({ role }) => isAtLeast(role, 'admin'))
  return (
    <Layout account={account} path={PATHS.overview} title={title}>
      <h1 class="page-title">{title}</h1>
      <Loaded query={query}>
        {({ projects, more }) => (
          <>
            <p class="overview-summary">
              <span role="status">
                <ConnectionPill pill={state} onRetry={reconnect} />
              </span>
              {projects.length > 0 && summarize(projects.filter(isUrgent).length)}
            </p>
            {projects.length === 0 && (
              <div class="empty-state">
                <h2>No projects yet</h2>
                <p>
                  {own ? (
                    <>
                      Create one in the{' '}
                      <a href={toOrganizationPath(own.id)}>
                        settings of <bdi>{own.name}</bdi>
                      </a>
                      .
                    </>
                  ) : (
                    'Ask an admin of your organization to create one, or to invite you.'
                  )}
                </p>
              </div>
            )}
            {[...Map.groupBy(projects, ({ organization }) => organization.id)].map(([id, own]) => (
              <Organization key={id} account={account} projects={own} heads={heads} />
            ))}
            {more > 0 && (
              <p class="hint">
                {toPlural(more, 'more project is not shown.', 'more projects are not shown.')}
              </p>
            )}
          </>
        )}
      </Loaded>
    </Layout>
  )
}

interface OrganizationOptions {
  account: Account
  projects: readonly OverviewProject[]
  heads: Readonly<Record<string, number>>
}

function Organization({ account, projects, heads }: OrganizationOptions) {
  return (
    <section>
      <h2 class="overview-organization">
        <bdi>{projects[0]?.organization.name}</bdi>
      </h2>
      <ul class="board">
        {projects.map(project => (
          <ProjectCard
            key={project.id}
            account={account}
            project={project}
            head={heads[project.id] ?? project.head}
          />
        ))}
      </ul>
    </section>
  )
}

/** The number of projects that need attention, in words. */
function summarize(urgent: number): string {
  if (urgent === 0) return 'Nothing unusual, and nothing failed.'
  return urgent === 1
    ? 'One project needs attention.'
    : `${urgent.toLocaleString()} projects need attention.`
}

/** How long the newest events may lag behind the counts. */
const REFRESH_MS = 5_000

interface LiveOverview {
  query: Query<Overview>
  /** The present heads of the logs, by project. */
  heads: Heads
  state: ConnectionState
  /** Connects again at once. */
  reconnect(): void
}

/** The state of all projects, kept up to date over one socket while the page is visible. */
function useOverview(): LiveOverview {
  const query = useRoute('GET /api/overview', {}, { pauseMs: REFRESH_MS, everyMs: MINUTE_MS })
  const [heads, setHeads] = useState<Heads>({})
  const [state, setState] = useState<ConnectionState>({ kind: 'connecting' })
  const reconnect = useRef(() => {})

  useEffect(() => {
    let hasHeads = false
    const socket = createLiveSocket({
      ...BROWSER,
      onConnectionState: setState,
      greet: () => ({ type: 'watch' }),
      receive(message) {
        if (message.type !== 'heads') return false
        setHeads(known => ({ ...known, ...message.heads }))
        // The first heads come with the data of the page.
        if (hasHeads) query.refresh()
        return (hasHeads = true)
      },
    })
    reconnect.current = socket.retry
    const end = watchBrowser(socket)
    return () => {
      end()
      socket.stop()
    }
  }, [])

  return { query, heads, state, reconnect: () => reconnect.current() }
}
