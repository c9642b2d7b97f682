import type { Account } from '../../../access/sign-in/schema.ts'
import { PATHS } from '../paths.ts'
import { Logo } from './artwork.tsx'
import { AccountMenu, ProjectMenu } from './menus.tsx'

interface TopBarOptions {
  account: Account
  project: string | undefined
}

/** The bar at the top of a page: the logo and the menus. */
export function TopBar({ account, project }: TopBarOptions) {
  return (
    <header class="top-bar">
      <a class="brand" href={PATHS.home} aria-label="Tidings">
        <Logo />
      </a>
      <ProjectMenu account={account} project={project} />
      <div class="bar-spacer" />
      <AccountMenu account={account} project={project} />
    </header>
  )
}
