import type { ComponentChildren } from 'preact'
import type { ProjectPage } from '../app.tsx'
import { Channels } from '../feed/channels.tsx'
import { EVERYTHING } from '../feed/search.ts'
import { useChannels } from '../feed/use-channels.ts'
import { AccountMenu, ProjectMenu } from '../parts/menu.tsx'
import { useTitle } from '../parts/page.tsx'
import { Undo } from '../parts/undo.tsx'
import { Mark } from '../parts/wave.tsx'
import { PATHS } from '../paths.ts'

interface FrameOptions extends Pick<ProjectPage, 'account' | 'project'> {
  title: string
  /** What stands in the bar. */
  bar?: ComponentChildren
  children: ComponentChildren
}

/** A page of a project beside its channels. */
export function Frame({ account, project, title, bar, children }: FrameOptions) {
  const channels = useChannels(project)
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
        {bar}
        <AccountMenu account={account} />
      </header>
      <Channels project={project} channels={channels.list} search={EVERYTHING} at="users" />
      <main id="content" class="stream" tabIndex={-1}>
        {children}
      </main>
      <Undo />
    </div>
  )
}
