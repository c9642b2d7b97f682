import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PATHS, toFeedPath, toOrganizationPath, toProjectPath } from '../paths.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { hasSeveralProjects } from '../session.ts'
import { Icon } from './icon.tsx'

/** A link in the navigation. */
export interface NavLink {
  /** The name of the icon, which also identifies the page. */
  icon: string
  name: string
  path: string
  /** The second key of the shortcut that starts with g. */
  key?: string
}

/** The link to the overview, for members of several projects. */
export function listOverviewLinks(account: Account): NavLink[] {
  return hasSeveralProjects(account)
    ? [{ icon: 'overview', name: 'Overview', path: PATHS.overview, key: 'o' }]
    : []
}

/** Links to the pages of a project. */
export function listProjectLinks(project: string): NavLink[] {
  return [
    { icon: 'feed', name: 'All events', path: toFeedPath(project), key: 'f' },
    { icon: 'users', name: 'Users', path: toProjectPath('users', project), key: 'p' },
    {
      icon: 'channels',
      name: 'Channels',
      path: toProjectPath('channels', project),
      key: 'c',
    },
    {
      icon: 'insights',
      name: 'Insights',
      path: toProjectPath('insights', project),
      key: 'i',
    },
  ]
}

/**
 * Links to the settings of a project, an organization and the server. The default organization is
 * that of the project.
 */
export function listSettingsLinks(
  { person, organizations }: Account,
  project: string | undefined,
  organization = organizations.find(({ projects }) => projects.some(({ id }) => id === project))
    ?.id ?? organizations[0]?.id,
): NavLink[] {
  const links: NavLink[] = []
  if (project !== undefined) {
    links.push(
      { icon: 'keys', name: 'API Keys', path: toProjectPath('keys', project), key: 'k' },
      {
        icon: 'webhooks',
        name: 'Webhooks',
        path: toProjectPath('webhooks', project),
        key: 'w',
      },
    )
  }
  if (organization !== undefined) {
    links.push({
      icon: 'organization',
      name: 'Organization',
      path: toOrganizationPath(organization),
    })
  }
  if (person.isOperator) links.push({ icon: 'server', name: 'Server', path: PATHS.server })
  return links
}

/** Links with a keyboard shortcut. */
export function listShortcutLinks(account: Account, project: string | undefined): NavLink[] {
  return [
    ...listOverviewLinks(account),
    ...(project === undefined ? [] : listProjectLinks(project)),
    ...listSettingsLinks(account, project),
  ].filter(({ key }) => key)
}

/** Links to the pages of the account. */
export function listAccountLinks(): NavLink[] {
  return [
    { icon: 'notifications', name: 'Notifications', path: PATHS.notifications },
    { icon: 'account', name: 'Account', path: PATHS.account },
  ]
}

/** The ID of the navigation of a project, which opens as a sheet on a phone. */
export const SHEET_ID = 'sidebar'

interface SidebarOptions {
  label: string
  /** On a phone, a sheet that the bottom bar opens. Otherwise a strip. */
  isSheet?: boolean
  /** Identifies the current page. When it changes, its link is scrolled into view. */
  current: string | undefined
  children: ComponentChildren
}

/** The navigation next to a page. On a phone it is a sheet, or a strip that scrolls sideways. */
export function Sidebar({ label, isSheet = false, current, children }: SidebarOptions) {
  const strip = useRef<HTMLElement>(null)
  useEffect(() => {
    // A sheet does not scroll sideways, and measuring it would lay out the page early.
    if (isSheet) return
    const here = strip.current?.querySelector<HTMLElement>('[aria-current]')
    if (!strip.current || !here) return
    strip.current.scrollLeft = here.offsetLeft + (here.offsetWidth - strip.current.clientWidth) / 2
  }, [current])
  return (
    <nav
      ref={strip}
      id={isSheet ? SHEET_ID : undefined}
      class={isSheet ? 'sidebar sheet' : 'sidebar'}
      popover={isSheet ? 'auto' : undefined}
      aria-label={label}
      onClick={({ target }) => {
        const isLink = target instanceof Element && target.closest('a')
        if (isSheet && isLink && strip.current?.matches(':popover-open'))
          strip.current.hidePopover()
      }}
    >
      {children}
    </nav>
  )
}

interface NavLinksOptions {
  /** The heading of the group. */
  title?: string
  links: readonly NavLink[]
  /** The path of the current page. */
  current?: string | undefined
}

/** A group of links. */
export function NavLinks({ title, links, current }: NavLinksOptions) {
  return (
    <>
      {title !== undefined && <h2 class="group">{title}</h2>}
      <ul class="nav-links" aria-label={title}>
        {links.map(({ icon, name, path }) => (
          <li key={path}>
            <a href={path} aria-current={path === current ? 'page' : undefined}>
              <Icon name={icon} />
              <bdi class="channel-name">{name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}
