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
import { Beside, listAccountPlaces, Places, type ProjectPlace } from './places.tsx'
import { Undo } from './undo.tsx'
import { Mark } from './wave.tsx'

interface FrameOptions {
  account: Account
  title: string
  children: ComponentChildren
}

interface ProjectFrameOptions extends FrameOptions {
  project: string
  at: Exclude<ProjectPlace, 'feed'>
}

/** A page of a project beside its places and channels. */
export function ProjectFrame({ project, at, ...options }: ProjectFrameOptions) {
  const channels = useChannels(project)
  return (
    <Frame
      {...options}
      project={project}
      beside={
        <Channels
          project={project}
          channels={channels}
          search={EVERYTHING}
          at={toProjectPath(at, project)}
        />
      }
    />
  )
}

/** A page of a person or of what they belong to; `path` is its own. */
export function AccountFrame({ path, ...options }: FrameOptions & { path: string }) {
  const kept = findKept('project') ?? ''
  const project = findProject(options.account, kept) ? kept : undefined
  return (
    <Frame
      {...options}
      project={project}
      beside={
        <Beside label="Settings" current={path}>
          <Places places={listAccountPlaces(options.account)} current={path} />
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
        <AccountMenu account={account} />
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
