import type { Account } from '../../../access/sign-in/schema.ts'
import { toFirstLetter } from '../first-letter.ts'
import { PATHS, toFeedPath, toOrganizationPath } from '../paths.ts'
import { hasSeveralProjects } from '../session.ts'
import { chooseTheme, theme, THEMES } from '../theme.ts'
import { Icon } from './icon.tsx'
import { listAccountLinks, listSettingsLinks, type NavLink } from './navigation.tsx'
import { SignOutButton } from './sign-out-button.tsx'
import { useOpened } from './use-opened.ts'

const THEME_NAMES = {
  system: 'System',
  light: 'Light',
  dark: 'Dark',
} as const

interface MenuOptions {
  account: Account
  project: string | undefined
}

/** The menu with the account, the theme, the settings and the sign-out button. */
export function AccountMenu({ account, project }: MenuOptions) {
  const { name, email } = account.person
  const { isOpened, onBeforeToggle } = useOpened()
  return (
    <>
      <button type="button" class="icon-button" popovertarget="account-menu" aria-label="Account">
        <span class="avatar" aria-hidden="true">
          {toFirstLetter(name.trim())}
        </span>
      </button>
      <div id="account-menu" class="menu menu-end" popover="auto" onBeforeToggle={onBeforeToggle}>
        {isOpened && (
          <>
            <p class="menu-account">
              <bdi>{name}</bdi>
              <span>
                <bdi>{email}</bdi>
              </span>
            </p>
            <fieldset class="themes">
              <legend>Theme</legend>
              <div>
                {THEMES.map(one => (
                  <label key={one}>
                    <input
                      type="radio"
                      name="theme"
                      checked={theme.value === one}
                      onChange={() => chooseTheme(one)}
                    />
                    <span>{THEME_NAMES[one]}</span>
                  </label>
                ))}
              </div>
            </fieldset>
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
          </>
        )}
      </div>
    </>
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
export function ProjectMenu({ account, project }: MenuOptions) {
  const current = account.organizations
    .flatMap(({ projects }) => projects)
    .find(({ id }) => id === project)
  const { isOpened, onBeforeToggle } = useOpened()
  return (
    <>
      <button type="button" class="project-button" popovertarget="project-menu">
        <bdi>{current?.name ?? 'Projects'}</bdi>
        <Icon name="down" size={12} />
      </button>
      <nav
        id="project-menu"
        class="menu"
        popover="auto"
        aria-label="Projects"
        onBeforeToggle={onBeforeToggle}
      >
        {isOpened && (
          <>
            {hasSeveralProjects(account) && (
              <a class="menu-item" href={PATHS.overview} onClick={hideMenu}>
                Overview
              </a>
            )}
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
          </>
        )}
      </nav>
    </>
  )
}

function hideMenu({ currentTarget }: { currentTarget: EventTarget }): void {
  if (currentTarget instanceof Element)
    currentTarget.closest<HTMLElement>('[popover]')?.hidePopover()
}
