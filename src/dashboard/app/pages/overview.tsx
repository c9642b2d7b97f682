import type { Account } from '../../../accounts/schema.ts'
import type { OverviewProject } from '../../../overview/schema.ts'
import { Layout } from '../components/layout.tsx'
import { Loaded } from '../components/loaded.tsx'
import { listAccountLinks, NavLinks, Sidebar } from '../components/navigation.tsx'
import { t } from '../locales/translate.tsx'
import { isUrgent, ProjectCard } from '../overview/project-card.tsx'
import { useOverview } from '../overview/use-overview.ts'
import { PATHS, toFeedPath } from '../paths.ts'
import type { AccountPageProps } from './props.ts'

/** All projects of the account: new events, unusual activity and failed deliveries. */
export default function OverviewPage({ account }: AccountPageProps) {
  const { query, heads, isLive } = useOverview()
  const projects = account.organizations.flatMap(({ projects }) => projects)
  const title = t('common.overview')
  return (
    <Layout
      account={account}
      project={undefined}
      title={title}
      sidebar={
        <Sidebar label={t('common.projects')} current={PATHS.overview}>
          <NavLinks
            links={[{ icon: 'overview', name: title, path: PATHS.overview }]}
            current={PATHS.overview}
          />
          <NavLinks
            title={t('common.projects')}
            links={projects.map(({ id, name }) => ({ icon: 'feed', name, path: toFeedPath(id) }))}
          />
          <NavLinks title={t('common.personal')} links={listAccountLinks()} />
        </Sidebar>
      }
    >
      <h1 class="page-title">{title}</h1>
      <Loaded query={query}>
        {({ projects, more }) => (
          <>
            <p class="overview-summary">
              <span class={isLive ? 'pill pill-live' : 'pill'} role="status">
                <span class="pill-dot" aria-hidden="true" />
                {t(isLive ? 'overview.live' : 'overview.connecting')}
              </span>
              {projects.length > 0 &&
                t('overview.urgent', { count: projects.filter(isUrgent).length })}
            </p>
            {projects.length === 0 && (
              <div class="empty-state">
                <h2>{t('app.noProjects')}</h2>
                <p>{t('app.noProjectsHint')}</p>
              </div>
            )}
            {[...Map.groupBy(projects, ({ organization }) => organization.id)].map(([id, own]) => (
              <Organization key={id} account={account} projects={own} heads={heads} />
            ))}
            {more > 0 && <p class="hint">{t('overview.more', { count: more })}</p>}
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
