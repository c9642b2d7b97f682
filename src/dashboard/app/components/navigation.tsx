import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PATHS, toFeedPath, toOrganizationPath, toProjectPath } from '../paths.ts'
import type { Account } from '../../../accounts/schema.ts'
import { Icon } from './icon.tsx'

/** A page that the navigation leads to. */
export interface NavLink {
  /** The name of its icon. */
  icon: string
  name: string
  path: string
  /** The key that leads to it after g. */
  key?: string
}

/** The pages of a project. */
export function listProjectLinks(project: string): NavLink[] {
  return [
    { icon: 'feed', name: 'All events', path: toFeedPath(project), key: 'f' },
    { icon: 'users', name: 'People', path: toProjectPath('users', project), key: 'p' },
    { icon: 'channels', name: 'Channels', path: toProjectPath('channels', project), key: 'c' },
  ]
}

/** Settings of a project, of an organization (that of the project by default) and of the server. */
export function listSettingsLinks(
  { person, organizations }: Account,
  project: string | undefined,
  organization = organizations.find(({ projects }) => projects.some(({ id }) => id === project))
    ?.id ?? organizations[0]?.id,
): NavLink[] {
  const places: NavLink[] = []
  if (project !== undefined) {
    places.push(
      { icon: 'keys', name: 'API Keys', path: toProjectPath('keys', project), key: 'k' },
      { icon: 'webhooks', name: 'Webhooks', path: toProjectPath('webhooks', project), key: 'w' },
    )
  }
  if (organization !== undefined) {
    places.push({
      icon: 'organization',
      name: 'Organization',
      path: toOrganizationPath(organization),
    })
  }
  if (person.isOperator) places.push({ icon: 'server', name: 'Server', path: PATHS.server })
  return places
}

/** The pages that the key g leads to. */
export function listShortcutLinks(account: Account, project: string | undefined): NavLink[] {
  if (project === undefined) return []
  return [...listProjectLinks(project), ...listSettingsLinks(account, project)].filter(
    ({ key }) => key,
  )
}

/** The pages of an account itself. */
export const ACCOUNT_LINKS: readonly NavLink[] = [
  { icon: 'notifications', name: 'Notifications', path: PATHS.notifications },
  { icon: 'account', name: 'Account', path: PATHS.account },
]

interface SidebarOptions {
  label: string
  /** What is looked at: another one is brought into sight. */
  current: string | undefined
  children: ComponentChildren
}

/** Links beside a page; on a phone a strip that is wider than the screen. */
export function Sidebar({ label, current, children }: SidebarOptions) {
  const strip = useRef<HTMLElement>(null)
  useEffect(() => {
    const here = strip.current?.querySelector<HTMLElement>('[aria-current]')
    if (!strip.current || !here) return
    strip.current.scrollLeft = here.offsetLeft + (here.offsetWidth - strip.current.clientWidth) / 2
  }, [current])
  return (
    <nav ref={strip} class="sidebar" aria-label={label}>
      {children}
    </nav>
  )
}

interface NavLinksOptions {
  /** The heading of the group. */
  title?: string
  places: readonly NavLink[]
  /** The path of the current page. */
  current?: string | undefined
}

/** A group of links to pages. */
export function NavLinks({ title, places, current }: NavLinksOptions) {
  return (
    <>
      {title !== undefined && <h2 class="group">{title}</h2>}
      <ul class="nav-links" aria-label={title}>
        {places.map(({ icon, name, path }) => (
          <li key={path}>
            <a href={path} aria-current={path === current ? 'page' : undefined}>
              <Icon name={icon} />
              <span class="channel-name">{name}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}
