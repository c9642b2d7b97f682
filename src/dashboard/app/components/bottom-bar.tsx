import { useLocation } from 'preact-iso'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Icon } from './icon.tsx'
import {
  listAccountLinks,
  listProjectLinks,
  listSettingsLinks,
  SHEET_ID,
  type NavLink,
} from './navigation.tsx'

interface BottomBarOptions {
  account: Account
  project: string | undefined
  /** True if the page has the sheet with the channels. */
  hasSheet: boolean
}

/** The main pages, at the bottom of a phone. Channels open as a sheet over pages of a project. */
export function BottomBar({ account, project, hasSheet }: BottomBarOptions) {
  const { path } = useLocation()
  if (project === undefined) return null
  const links = listProjectLinks(project)
  const channels = links.find(({ icon }) => icon === 'channels')
  const [first, ...settings] = [...listSettingsLinks(account, project), ...listAccountLinks()]
  const isSettings = [first, ...settings].some(link => link?.path === path)
  const toLink = ({ icon, name, path: to }: NavLink, isCurrent: boolean) => (
    <a key={icon} href={to} aria-current={isCurrent ? 'page' : undefined}>
      <Icon name={icon} />
      {name}
    </a>
  )
  return (
    <nav class="bottom-bar" aria-label="Pages">
      {links.map(link =>
        link === channels && hasSheet ? (
          <button key={link.icon} type="button" popovertarget={SHEET_ID}>
            <Icon name={link.icon} />
            {link.name}
          </button>
        ) : (
          toLink(
            link.icon === 'feed' ? { ...link, name: 'Events' } : link,
            !isSettings && isUnder(path, link, links),
          )
        ),
      )}
      {first && toLink({ ...first, icon: 'settings', name: 'Settings' }, isSettings)}
    </nav>
  )
}

/** Returns whether a path belongs to a link, and to no link with a longer path. */
function isUnder(path: string, link: NavLink, links: readonly NavLink[]): boolean {
  const under = links.filter(({ path: to }) => path === to || path.startsWith(`${to}/`))
  return under.every(({ path: to }) => to.length <= link.path.length) && under.includes(link)
}
