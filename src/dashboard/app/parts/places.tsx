import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { PATHS, toFeedPath, toOrganizationPath, toProjectPath } from '../paths.ts'
import type { Account } from '../../../accounts/schema.ts'
import { Icon } from './icon.tsx'

/** The pages of a project, each with the key that leads to it after g. */
export const PROJECT_PLACES = [
  { at: 'feed', name: 'All events', key: 'f' },
  { at: 'users', name: 'People', key: 'p' },
  { at: 'channels', name: 'Channels', key: 'c' },
  { at: 'webhooks', name: 'Webhooks', key: 'w' },
  { at: 'keys', name: 'API keys', key: 'k' },
] as const

export type ProjectPlace = (typeof PROJECT_PLACES)[number]['at']

export interface Place {
  at: string
  name: string
  path: string
}

export function listProjectPlaces(project: string): Place[] {
  return PROJECT_PLACES.map(({ at, name }) => ({
    at,
    name,
    path: at === 'feed' ? toFeedPath(project) : toProjectPath(at, project),
  }))
}

/** The pages of a person, and of what they belong to. */
export function listAccountPlaces({ person, organizations }: Account): Place[] {
  return [
    { at: 'notifications', name: 'Notifications', path: PATHS.notifications },
    { at: 'account', name: 'Account', path: PATHS.account },
    ...organizations.map(({ id, name }) => ({
      at: 'organization',
      name,
      path: toOrganizationPath(id),
    })),
    ...(person.isOperator ? [{ at: 'server', name: 'Server', path: PATHS.server }] : []),
  ]
}

interface BesideOptions {
  label: string
  /** What is looked at: another one is brought into sight. */
  current: string | undefined
  children: ComponentChildren
}

/** Links beside a page; on a phone a strip that is wider than the screen. */
export function Beside({ label, current, children }: BesideOptions) {
  const strip = useRef<HTMLElement>(null)
  useEffect(() => {
    const here = strip.current?.querySelector<HTMLElement>('[aria-current]')
    if (!strip.current || !here) return
    strip.current.scrollLeft = here.offsetLeft + (here.offsetWidth - strip.current.clientWidth) / 2
  }, [current])
  return (
    <nav ref={strip} class="channels" aria-label={label}>
      {children}
    </nav>
  )
}

/** Links to pages, of which one is looked at. */
export function Places({
  places,
  current,
}: {
  places: readonly Place[]
  current?: string | undefined
}) {
  return (
    <ul class="places">
      {places.map(({ at, name, path }) => (
        <li key={path}>
          <a href={path} aria-current={path === current ? 'page' : undefined}>
            <Icon name={at} />
            <bdi class="channel-name">{name}</bdi>
          </a>
        </li>
      ))}
    </ul>
  )
}
