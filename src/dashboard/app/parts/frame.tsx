import type { ComponentChildren } from 'preact'
import type { Account } from '../../../accounts/schema.ts'
import { Channels } from '../feed/channels.tsx'
import { EVERYTHING } from '../feed/search.ts'
import { useChannels } from '../feed/use-channels.ts'
import { findKept } from '../kept.ts'
import { PATHS, toProjectPath } from '../paths.ts'
import { findProject } from '../session.ts'
import { Confirmation } from './confirm.tsx'
import { AccountMenu, ProjectMenu } from './menu.tsx'
import { useTitle } from './page.tsx'
import { Beside, listProjectPlaces, listSettings, PERSONAL_PLACES, Places } from './places.tsx'
import { Undo } from './undo.tsx'
import { Mark } from './wave.tsx'

interface FrameOptions {
  account: Account
  title: string
  children: ComponentChildren
}

interface ProjectFrameOptions extends FrameOptions {
  project: string
  at: 'users' | 'channels'
}

/** A page of a project beside the project's pages, channels and settings. */
export function ProjectFrame({ project, at, ...options }: ProjectFrameOptions) {
  const channels = useChannels(project)
  return (
    <Frame
      {...options}
      project={project}
      beside={
        <Channels
          account={options.account}
          project={project}
          channels={channels}
          search={EVERYTHING}
          at={toProjectPath(at, project)}
        />
      }
    />
  )
}

interface SettingsFrameOptions extends FrameOptions {
  /** The path of the page. */
  path: string
  /** The project that is set up; the one that was looked at last by default. */
  project?: string
  /** The organization that is set up; that of the project by default. */
  organization?: string | undefined
}

/** A page of the settings, or of the account itself. */
export function SettingsFrame({ path, organization, ...options }: SettingsFrameOptions) {
  const { account } = options
  const kept = options.project ?? findKept('project') ?? ''
  const project = findProject(account, kept) ? kept : undefined
  return (
    <Frame
      {...options}
      project={project}
      beside={
        <Beside label="Settings" current={path}>
          {project !== undefined && <Places places={listProjectPlaces(project)} />}
          <Places
            title="Settings"
            places={listSettings(account, project, organization)}
            current={path}
          />
          <Places title="Personal" places={PERSONAL_PLACES} current={path} />
        </Beside>
      }
    />
  )
}

function Frame({
  account,
  project,
  title,
  beside,
  children,
}: FrameOptions & { project: string | undefined; beside: ComponentChildren }) {
  useTitle(title)
  return (
    <div class="frame">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={PATHS.home} aria-label="Tidings">
          <Mark />
        </a>
        <ProjectMenu account={account} project={project} />
        <div class="search-place" />
        <AccountMenu account={account} project={project} />
      </header>
      {beside}
      <main id="content" class="stream" tabIndex={-1}>
        {children}
      </main>
      <Undo />
      <Confirmation />
    </div>
  )
}
