import type { ComponentChildren } from 'preact'
import type { Account } from '../../../accounts/schema.ts'
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
  listProjectLinks,
  listSettingsLinks,
  ACCOUNT_LINKS,
  NavLinks,
} from './navigation.tsx'
import { Toast } from './toast.tsx'
import { TopBar } from './top-bar.tsx'

interface LayoutOptions {
  account: Account
  title: string
  children: ComponentChildren
}

interface ProjectLayoutOptions extends LayoutOptions {
  project: string
  at: 'users' | 'channels'
}

/** A page of a project, next to the navigation of the project. */
export function ProjectLayout({ project, at, ...options }: ProjectLayoutOptions) {
  const channels = useChannels(project)
  return (
    <Layout
      {...options}
      project={project}
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
  /** The project of the settings. Default: the most recently opened project. */
  project?: string
  /** The organization of the settings. Default: that of the project. */
  organization?: string | undefined
}

/** A page of the settings or of the account. */
export function SettingsLayout({ path, organization, ...options }: SettingsLayoutOptions) {
  const { account } = options
  const kept = options.project ?? readStored('project') ?? ''
  const project = findProject(account, kept) ? kept : undefined
  return (
    <Layout
      {...options}
      project={project}
      sidebar={
        <Sidebar label="Settings" current={path}>
          {project !== undefined && <NavLinks links={listProjectLinks(project)} />}
          <NavLinks
            title="Settings"
            links={listSettingsLinks(account, project, organization)}
            current={path}
          />
          <NavLinks title="Personal" links={ACCOUNT_LINKS} current={path} />
        </Sidebar>
      }
    />
  )
}

function Layout({
  account,
  project,
  title,
  sidebar,
  children,
}: LayoutOptions & { project: string | undefined; sidebar: ComponentChildren }) {
  useDocumentTitle(title)
  return (
    <div class="layout">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <TopBar account={account} project={project} />
      {sidebar}
      <main id="content" class="stream" tabIndex={-1}>
        {children}
      </main>
      <Toast />
      <VerificationPrompt />
    </div>
  )
}
