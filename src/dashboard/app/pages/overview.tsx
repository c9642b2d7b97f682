import type { Account } from '../../../access/sign-in/schema.ts'
import type { OverviewProject } from '../../../log/overview/schema.ts'
import { Layout } from '../components/layout.tsx'
import { Loaded, MINUTE_MS, useRoute } from '../components/query.tsx'
import { toPlural } from '../locale.ts'
import { isUrgent, ProjectCard } from '../overview/project-card.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { isAtLeast } from '../session.ts'
import type { AccountPageProps } from './props.ts'
import { useState } from 'preact/hooks'
import { type Heads, createLiveSocket } from '../live/socket.ts'
import { LiveSummary, useSocket } from '../live/use-socket.tsx'

/** All projects of the account: new events, alarms, unusual activity and failed deliveries. */
export default function OverviewPage({ account }: AccountPageProps) {
  const { query, heads, live } = useOverview()
  const title = 'Overview'
  const own = account.organizations.find(({ role }) => isAtLeast(role, 'admin'))
  return (
    <Layout account={account} path={PATHS.overview} title={title}>
      <h1 class="page-title">{title}</h1>
      <Loaded query={query}>
        {({ projects, more }) => (
          <>
            <LiveSummary live={live}>
              {projects.length > 0 && summarize(account, projects)}
            </LiveSummary>
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
function summarize(account: Account, projects: readonly OverviewProject[]): string {
  const urgent = projects.filter(one => isUrgent(account, one)).length
  if (urgent === 0)
    return projects.some(({ acknowledged }) => acknowledged > 0)
      ? 'Every firing alarm is acknowledged.'
      : 'Nothing is firing, unusual or failed.'
  return urgent === 1
    ? 'One project needs attention.'
    : `${urgent.toLocaleString()} projects need attention.`
}

/** How long the newest events may lag behind the counts. */
const REFRESH_MS = 5_000

/** The state of all projects, kept up to date over one socket while the page is visible. */
function useOverview() {
  const query = useRoute('GET /api/overview', {}, { pauseMs: REFRESH_MS, everyMs: MINUTE_MS })
  /** The present heads of the logs, by project. */
  const [heads, setHeads] = useState<Heads>({})
  const live = useSocket('', environment => {
    let hasHeads = false
    return createLiveSocket({
      ...environment,
      greet: () => ({ type: 'watch' }),
      receive(message) {
        if (message.type !== 'heads') return false
        setHeads(known => ({ ...known, ...message.heads }))
        // The first heads come with the data of the page.
        if (hasHeads) query.refresh()
        return (hasHeads = true)
      },
    })
  })
  return { query, heads, live }
}
