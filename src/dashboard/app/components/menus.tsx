import type { Account } from '../../../access/sign-in/schema.ts'
import { toFirstLetter } from '../users/avatar.tsx'
import { PATHS } from '../paths.ts'
import { findProject } from '../session.ts'
import { Icon } from './icon.tsx'
import { IconMenu, Popover } from './popover.tsx'
import { FailedPart, lazyPages } from '../lazy-page.tsx'

// A reader can open a menu before the page has its content, for which loadAfter would wait.
const items = lazyPages(() => import('../after-load.ts'), FailedPart)
const AccountItems = items('AccountItems')
const DisplayItems = items('DisplayItems')
const ProjectItems = items('ProjectItems')

interface MenuOptions {
  account: Account
  project: string | undefined
}

/** The menu with the account, the theme and the sign-out button. */
function AccountMenu({ account }: Pick<MenuOptions, 'account'>) {
  return (
    <>
      <button type="button" class="icon-button" popovertarget="account-menu" aria-label="Account">
        <span class="avatar" aria-hidden="true">
          {toFirstLetter(account.person.name.trim())}
        </span>
      </button>
      <Popover id="account-menu" class="menu menu-end">
        <AccountItems account={account} />
      </Popover>
    </>
  )
}

/** The menu with the current project and links to the others. */
function ProjectMenu({ account, project }: MenuOptions) {
  const current = findProject(account, project ?? '')?.project
  return (
    <>
      <button type="button" class="project-button" popovertarget="project-menu">
        <bdi>{current?.name ?? 'Projects'}</bdi>
        <Icon name="down" size={12} />
      </button>
      <Popover id="project-menu" class="menu" label="Projects">
        <ProjectItems account={account} project={project} />
      </Popover>
    </>
  )
}

/** A menu with the choices of how rows look. */
export function DisplayMenu() {
  return (
    <IconMenu id="display-menu" icon="display" label="Display">
      <DisplayItems />
    </IconMenu>
  )
}

/** The bar at the top of a page: the logo and the menus. */
export function TopBar({ account, project }: MenuOptions) {
  return (
    <header class="top-bar">
      <a class="brand" href={PATHS.home} aria-label="Tidings">
        <Icon name="logo" size={28} />
      </a>
      <ProjectMenu account={account} project={project} />
      <div class="bar-spacer" />
      <AccountMenu account={account} />
    </header>
  )
}
