import type { ComponentChildren } from 'preact'
import type { Account } from '../../../accounts/schema.ts'
import { PATHS } from '../paths.ts'
import { Logo } from './artwork.tsx'
import { AccountMenu, ProjectMenu } from './menus.tsx'

interface TopBarOptions {
  account: Account
  project: string | undefined
  children?: ComponentChildren
}

/** The bar at the top of a page: the logo, the menus, and `children` between them. */
export function TopBar({ account, project, children }: TopBarOptions) {
  return (
    <header class="top-bar">
      <a class="brand" href={PATHS.home} aria-label="Tidings">
        <Logo />
      </a>
      <ProjectMenu account={account} project={project} />
      <div class="bar-spacer" />
      {children}
      <AccountMenu account={account} project={project} />
    </header>
  )
}
