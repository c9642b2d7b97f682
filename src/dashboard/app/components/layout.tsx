import type { ComponentChildren } from 'preact'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ChecklistLink } from '../first-run/checklist-link.tsx'
import { ProjectSidebar } from './project-sidebar.tsx'
import { EMPTY_SEARCH } from '../feed/search.ts'
import { useChannels } from '../feed/use-channels.ts'
import { readStored } from '../storage.ts'
import { toProjectPath } from '../paths.ts'
import { findProject } from '../session.ts'
import { VerificationPrompt } from './verification-prompt.tsx'
import { useDocumentTitle } from './standalone-page.tsx'
import {
  Sidebar,
  listOverviewLinks,
  listProjectLinks,
  listSettingsLinks,
  listAccountLinks,
  NavLinks,
} from './navigation.tsx'
import { BottomBar } from './bottom-bar.tsx'
import { Toast } from './toast.tsx'
import { TopBar } from './top-bar.tsx'

interface LayoutOptions {
  account: Account
  title: string
  children: ComponentChildren
}

interface ProjectLayoutOptions extends LayoutOptions {
  project: string
  at: 'users' | 'channels' | 'insights'
}

/** A page of a project, next to the navigation of the project. */
export function ProjectLayout({ project, at, ...options }: ProjectLayoutOptions) {
  const channels = useChannels(project)
  return (
    <Layout
      {...options}
      project={project}
      hasSheet
      sidebar={
        <ProjectSidebar
          account={options.account}
          project={project}
          channels={channels}
          search={EMPTY_SEARCH}
          at={toProjectPath(at, project)}
        />
      }
    />
  )
}

interface SettingsLayoutOptions extends LayoutOptions {
  /** The path of the current page. */
  path: string
  /** The project of the settings. Default: the one opened last, or else the first. */
  project?: string
  /** The organization of the settings. Default: that of the project. */
  organization?: string | undefined
}

/** A page of the settings or of the account. */
export function SettingsLayout({ path, organization, ...options }: SettingsLayoutOptions) {
  const { account } = options
  const project = findLastProject(account, options.project, organization)
  return (
    <Layout
      {...options}
      project={project}
      sidebar={
        <Sidebar label="Settings" current={path}>
          <NavLinks
            links={[
              ...listOverviewLinks(account),
              ...(project === undefined ? [] : listProjectLinks(project)),
            ]}
          />
          <NavLinks
            title="Settings"
            links={listSettingsLinks(account, project, organization)}
            current={path}
          />
          <NavLinks title="Personal" links={listAccountLinks()} current={path} />
        </Sidebar>
      }
    />
  )
}

/** The project opened last, or else the first one, of an organization if it has any. */
function findLastProject(
  account: Account,
  project = readStored('project') ?? '',
  organization?: string,
): string | undefined {
  if (findProject(account, project)) return project
  const own = account.organizations.find(({ id }) => id === organization)
  return (own ?? account.organizations[0])?.projects[0]?.id
}

/** A page next to a navigation. */
export function Layout({
  account,
  project,
  title,
  hasSheet = false,
  sidebar,
  children,
}: LayoutOptions & {
  project: string | undefined
  hasSheet?: boolean
  sidebar: ComponentChildren
}) {
  useDocumentTitle(title)
  return (
    <div class="layout">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <TopBar account={account} project={project} />
      {sidebar}
      <BottomBar
        account={account}
        project={project ?? findLastProject(account)}
        hasSheet={hasSheet}
      />
      <main id="content" class="stream" tabIndex={-1}>
        <ChecklistLink account={account} />
        {children}
      </main>
      <Toast />
      <VerificationPrompt />
    </div>
  )
}
