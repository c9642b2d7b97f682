import { useLocation } from 'preact-iso'
import { Icon } from './icon.tsx'
import { listProjectLinks } from './navigation.tsx'

/** Pages of the settings and of the account, which the sheet of settings lists. */
const SETTINGS = /^(\/p\/[^/]+)?\/(settings|notifications|account)(\/|$)/

/** The main places, at the bottom of a phone. Channels and settings open as sheets. */
export function BottomBar({ project }: { project: string | undefined }) {
  const { path } = useLocation()
  const links = project === undefined ? [] : listProjectLinks(project)
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
          </a>
        )
      })}
    </nav>
  )
}
