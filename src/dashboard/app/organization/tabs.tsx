import { useEffect, useRef } from 'preact/hooks'
import { toOrganizationPath, type OrganizationTab } from '../paths.ts'

const NAMES: Readonly<Record<OrganizationTab, string>> = {
  general: 'General',
  members: 'Members',
  security: 'Security',
  tokens: 'Tokens',
  audit: 'Audit log',
}

interface TabsOptions {
  organization: string
  tabs: readonly OrganizationTab[]
  current: OrganizationTab
}

/** Links to the tabs of an organization. */
export function OrganizationTabs({ organization, tabs, current }: TabsOptions) {
  const row = useRef<HTMLUListElement>(null)
  // On a phone the row scrolls.
  useEffect(() => {
    const here = row.current?.querySelector<HTMLElement>('[aria-current]')
    if (row.current && here)
      row.current.scrollLeft = here.offsetLeft + (here.offsetWidth - row.current.clientWidth) / 2
  }, [current])
  return (
    <nav aria-label="Organization">
      <ul class="tab-row" ref={row}>
        {tabs.map(tab => (
          <li key={tab}>
            <a
              class="tab"
              href={toOrganizationPath(organization, tab)}
              aria-current={tab === current ? 'page' : undefined}
            >
              {NAMES[tab]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
