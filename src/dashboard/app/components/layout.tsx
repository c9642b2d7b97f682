import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Sidebar } from './sidebar.tsx'
import { EMPTY_SEARCH } from '../feed/search.ts'
import { useChannels } from '../feed/use-channels.ts'
import { readStored, store } from '../storage.ts'
import { toProjectPath } from '../paths.ts'
import { findProject } from '../session.ts'
import { VerificationPrompt } from './verification-prompt.tsx'
import { useDocumentTitle } from './standalone-page.tsx'
import { BottomBar } from './navigation.tsx'
import { Toast } from './toast.tsx'
import { TopBar } from './menus.tsx'
import { signal } from '@preact/signals'

interface LayoutOptions {
  account: Account
  title: string
  children: ComponentChildren
}

interface ProjectLayoutOptions extends LayoutOptions {
  project: string
  at: Parameters<typeof toProjectPath>[0]
  /** The name of the list to which a page of one thing leads back, which has its own title. */
  list?: string
}

/** A page of a project. */
export function ProjectLayout({ at, list, children, ...options }: ProjectLayoutOptions) {
  const path = toProjectPath(at, options.project)
  useEffect(() => store('project', options.project), [options.project])
  return (
    <Layout {...options} path={path}>
      {list === undefined ? (
        <h1 class="page-title">{options.title}</h1>
      ) : (
        <p>
          <a class="text-link" href={path}>
            {list}
          </a>
        </p>
      )}
      {children}
    </Layout>
  )
}

interface PageLayoutOptions extends LayoutOptions {
  /** The path of the current page. */
  path: string
  /** The project of the navigation. Default: the one opened last, or else the only one. */
  project?: string
  /** The organization of the settings. Default: that of the project. */
  organization?: string | undefined
}

/** A page next to the navigation. */
export function Layout({
  account,
  title,
  path,
  organization,
  children,
  ...wanted
}: PageLayoutOptions) {
  const project = findLastProject(account, wanted.project, organization)
  const channels = useChannels(project)
  useDocumentTitle(title)
  return (
    <div class="layout">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <TopBar account={account} project={project} />
      <Sidebar
        account={account}
        project={project}
        organization={organization}
        channels={channels}
        search={EMPTY_SEARCH}
        at={path}
      />
      <BottomBar project={project} alarms={channels.alarms} />
      <main id="content" class="stream" tabIndex={-1}>
        <ChecklistLink account={account} />
        {children}
      </main>
      <Toast />
      <VerificationPrompt />
    </div>
  )
}

/** The project opened last, or else the only one, of an organization if it has any. */
function findLastProject(
  account: Account,
  project = readStored('project') ?? '',
  organization?: string,
): string | undefined {
  if (findProject(account, project)) return project
  const own = account.organizations.filter(({ id }) => id === (organization ?? id))
  const [only, ...others] = own.flatMap(({ projects }) => projects)
  return others.length === 0 ? only?.id : undefined
}

/** The project whose checklist was opened in this page and has open steps. */
export const openChecklist = signal<string>()

/** Leads from the pages of the steps back to an open checklist. */
function ChecklistLink({ account }: { account: Account }) {
  const project = openChecklist.value
  if (project === undefined || !findProject(account, project)) return null
  return (
    <p class="note">
      <a href={toProjectPath('start', project)}>Back to the checklist</a>
    </p>
  )
}
