import { useEffect, useState } from 'preact/hooks'
import { PATHS, toFeedPath, toOrganizationPath, toProjectPath } from '../paths.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Icon } from './icon.tsx'
import { useLocation } from 'preact-iso'

/** A link in the navigation. */
export interface NavLink {
  /** The name of the icon, which also identifies the page. */
  icon: string
  name: string
  path: string
  /** The second key of the shortcut that starts with g. */
  key?: string
}

/** The link to the overview. */
export const OVERVIEW: NavLink = {
  ...{ icon: 'overview', name: 'Overview', path: PATHS.overview, key: 'o' },
}

/** Returns what makes links to pages of a project. */
function linksIn(project: string) {
  return (place: Parameters<typeof toProjectPath>[0], name: string, key: string): NavLink => ({
    ...{ icon: place, name, path: toProjectPath(place, project), key },
  })
}

/** Links to the pages of a project. */
export function listProjectLinks(project: string): NavLink[] {
  const toLink = linksIn(project)
  return [
    { icon: 'feed', name: 'All events', path: toFeedPath(project), key: 'f' },
    toLink('open', 'Open', 't'),
    toLink('users', 'Users', 'u'),
    toLink('channels', 'Channels', 'c'),
    toLink('insights', 'Insights', 'i'),
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
    const toLink = linksIn(project)
    links.push(
      toLink('keys', 'API Keys', 'k'),
      toLink('webhooks', 'Webhooks', 'w'),
      toLink('heartbeats', 'Heartbeats', 'h'),
      toLink('hooks', 'Inbound hooks', 'n'),
      toLink('silences', 'Silences', 's'),
      toLink('rules', 'Rules', 'r'),
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
    OVERVIEW,
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

interface NavLinksOptions {
  /** The heading of the group. */
  title?: string
  links: readonly NavLink[]
  /** The path of the current page. */
  current?: string | undefined
  /** The count of the badge on the link to what is open. */
  alarms?: number
}

/** A group of links. */
export function NavLinks({ title, links, current, alarms = 0 }: NavLinksOptions) {
  return (
    <>
      {title !== undefined && <h2>{title}</h2>}
      <ul class="nav-links" aria-label={title}>
        {links.map(({ icon, name, path }) => (
          <li key={path}>
            <a href={path} aria-current={path === current ? 'page' : undefined}>
              <Icon name={icon} />
              <bdi class="channel-name">{name}</bdi>
              {icon === 'open' && <Alarms count={alarms} />}
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The number of alarms and questions that nobody has answered. Nothing without any. */
function Alarms({ count }: { count: number }) {
  if (count === 0) return null
  return (
    <span class="unread alarms">
      {toUnread(count)}
      <span class="visually-hidden"> unanswered</span>
    </span>
  )
}

/** The server stops counting here. */
const MAX_COUNTED = 100

/** A count of a badge. */
export function toUnread(count: number): string {
  return count < MAX_COUNTED ? `${count}` : `${MAX_COUNTED - 1}+`
}

/** Pages of the settings and of the account, which the sheet of settings lists. */
export const SETTINGS = /^(\/p\/[^/]+)?\/(settings|notifications|account)(\/|$)/

/** The main places, at the bottom of a phone. Channels and settings open as sheets. */
export function BottomBar({ project, alarms }: { project: string | undefined; alarms: number }) {
  const { path } = useLocation()
  const links = project === undefined ? [OVERVIEW] : listProjectLinks(project)
  const settings = { icon: 'settings', name: 'Settings', path: '' }
  // The path of the feed begins the others, and comes first.
  const current = SETTINGS.test(path)
    ? settings
    : links.findLast(({ path: to }) => path === to || path.startsWith(`${to}/`))
  return (
    <nav class="bottom-bar" aria-label="Pages">
      {[...links, settings].map(link => {
        const { icon, name, path: to } = link
        const here = link === current ? 'page' : undefined
        return icon === 'channels' || icon === 'settings' ? (
          <button key={icon} type="button" popovertarget={icon} aria-current={here}>
            <Icon name={icon} />
            {name}
          </button>
        ) : (
          <a key={icon} href={to} aria-current={here}>
            <Icon name={icon} />
            {icon === 'feed' ? 'Events' : name}
            {icon === 'open' && <Alarms count={alarms} />}
          </a>
        )
      })}
    </nav>
  )
}

/** Returns whether a media query matches, now and after each change. */
export function useMedia(media: string): boolean {
  const [isMatch, setMatch] = useState(matchMedia(media).matches)
  useEffect(() => {
    const query = matchMedia(media)
    const look = () => setMatch(query.matches)
    query.addEventListener('change', look)
    return () => query.removeEventListener('change', look)
  }, [])
  return isMatch
}
