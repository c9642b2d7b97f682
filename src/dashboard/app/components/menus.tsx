import type { Signal } from '@preact/signals'
import type { Account } from '../../../access/sign-in/schema.ts'
import { toFirstLetter } from '../users/avatar.tsx'
import { PATHS, toFeedPath, toOrganizationPath } from '../paths.ts'
import { findProject } from '../session.ts'
import { theme, THEMES } from '../theme.ts'
import { Icon } from './icon.tsx'
import { listAccountLinks, listSettingsLinks, type NavLink } from './navigation.tsx'
import { Segmented, SignOutButton } from './buttons.tsx'
import { Popover } from './popover.tsx'
import { Logo } from './artwork.tsx'

const CHOICES = {
  system: 'System',
  light: 'Light',
  dark: 'Dark',
  compact: 'Compact',
  comfortable: 'Comfortable',
  relative: 'Relative',
  absolute: 'Time of day',
} as const

interface MenuOptions {
  account: Account
  project: string | undefined
}

/** The menu with the account, the theme, the settings and the sign-out button. */
function AccountMenu({ account, project }: MenuOptions) {
  const { name, email } = account.person
  return (
    <>
      <button type="button" class="icon-button" popovertarget="account-menu" aria-label="Account">
        <span class="avatar" aria-hidden="true">
          {toFirstLetter(name.trim())}
        </span>
      </button>
      <Popover id="account-menu" class="menu menu-end">
        <p class="menu-account">
          <bdi>{name}</bdi>
          <span>
            <bdi>{email}</bdi>
          </span>
        </p>
        <Choice title="Theme" all={THEMES} chosen={theme} />
        <MenuLinks links={listAccountLinks()} />
        <section>
          <h2>Settings</h2>
          <MenuLinks links={listSettingsLinks(account, project)} />
        </section>
        <hr />
        <a class="menu-item" href="/docs">
          Documentation
        </a>
        <a class="menu-item" href="/source">
          Source code
        </a>
        <SignOutButton className="menu-item" />
      </Popover>
    </>
  )
}

interface ChoiceOptions<One> {
  title: string
  all: readonly One[]
  chosen: Signal<One>
}

/** A choice between a few looks of the pages. */
export function Choice<One extends keyof typeof CHOICES>(options: ChoiceOptions<One>) {
  const { title, all, chosen } = options
  return (
    <section>
      <h2>{title}</h2>
      <Segmented
        label={title}
        all={all}
        chosen={chosen.value}
        toText={one => CHOICES[one]}
        onChoose={one => (chosen.value = one)}
      />
    </section>
  )
}

function MenuLinks({ links }: { links: readonly NavLink[] }) {
  return links.map(({ icon, name, path }) => (
    <a key={icon} class="menu-item" href={path} onClick={hideMenu}>
      {name}
    </a>
  ))
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
        <a class="menu-item" href={PATHS.overview} onClick={hideMenu}>
          Overview
        </a>
        {account.organizations.map(({ id, name, projects }) => (
          <section key={id}>
            <h2>
              <bdi>{name}</bdi>
            </h2>
            {projects.map(one => (
              <a
                key={one.id}
                class="menu-item"
                href={toFeedPath(one.id)}
                aria-current={one.id === project ? 'page' : undefined}
                onClick={hideMenu}
              >
                <bdi>{one.name}</bdi>
              </a>
            ))}
            <a class="menu-item menu-more" href={toOrganizationPath(id)} onClick={hideMenu}>
              Members and settings
            </a>
          </section>
        ))}
      </Popover>
    </>
  )
}

function hideMenu({ currentTarget }: { currentTarget: EventTarget }): void {
  if (currentTarget instanceof Element)
    currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
}

/** The bar at the top of a page: the logo and the menus. */
export function TopBar({ account, project }: MenuOptions) {
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
