import type { Account } from '../../../access/sign-in/schema.ts'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { setNotifications } from '../channels/api.ts'
import { toMuteEnd, type SettingChange } from '../channels/mute.ts'
import { copyText } from '../copy-text.ts'
import {
  listAccountLinks,
  listProjectLinks,
  listSettingsLinks,
  OVERVIEW,
} from '../components/navigation.tsx'
import { showToast } from '../components/toast.tsx'
import { toChannelPath, toFeedPath, toOrganizationPath } from '../paths.ts'
import { signOut } from '../session.ts'
import { theme, THEMES } from '../theme.ts'
import type { Searchable } from './match.ts'

/** A page or an action in the command palette. */
export interface Entry extends Searchable {
  /** Its kind, or its keyboard shortcut. */
  hint: string
  run(): void
}

export interface PaletteContext {
  account: Account
  /** The project of the page, or the most recently opened one. */
  project: string | undefined
  /** The path of the page. */
  path: string
  channels: readonly ProjectChannel[]
  /** The ID of the current channel. */
  channel: string | undefined
  route(path: string): void
  onShortcuts(): void
}

/** All entries for the current page, starting with those for its channel. */
export function listEntries(here: PaletteContext): Entry[] {
  const { account, project, path: current, channels, route } = here
  const go = (hint: string, path: string, text: string, name?: string): Entry => ({
    text,
    ...(name !== undefined && { name }),
    hint,
    run: () => route(path),
  })
  const links = [OVERVIEW, ...(project === undefined ? [] : listProjectLinks(project))]
  return [
    ...listChannelEntries(here),
    {
      text: 'Copy link to this page',
      hint: 'Action',
      run: () => void copyLink(location.href),
    },
    ...links.map(({ key, path, name }) => go(`g ${key}`, path, name)),
    ...channels.map(({ id, name }) => go('Channel', toFeedPath(project ?? '', id), '', name)),
    ...account.organizations.flatMap(({ projects }) =>
      projects
        .filter(({ id }) => id !== project || !current.startsWith('/p/'))
        .map(({ id, name }) => go('Project', toFeedPath(id), '', name)),
    ),
    ...listSettingsLinks(account, project)
      .filter(({ icon }) => icon !== 'organization')
      .map(({ key, path, name }) => go(key ? `g ${key}` : 'Page', path, `Settings: ${name}`)),
    ...account.organizations.map(({ id, name }) =>
      go('Organization', toOrganizationPath(id), 'Settings: ', name),
    ),
    ...listAccountLinks().map(({ path, name }) => go('Page', path, name)),
    ...THEMES.map(one => ({
      text: `Theme: ${one}`,
      hint: 'Action',
      run: () => void (theme.value = one),
    })),
    { text: 'Keyboard shortcuts', hint: '?', run: here.onShortcuts },
    {
      text: 'Documentation',
      hint: 'Page',
      run: () => location.assign('/docs'),
    },
    { text: 'Sign out', hint: 'Account', run: () => void leave() },
  ]
}

function listChannelEntries({ project, channel, channels, route }: PaletteContext): Entry[] {
  if (project === undefined || channel === undefined) return []
  const known = channels.find(({ id }) => id === channel)
  const hint = known?.name ?? 'Channel'
  const change = (wish: SettingChange, message: string) =>
    setNotifications(project, channel, wish, message)
  const muteUntil = () => new Date(toMuteEnd('hour', Date.now())).toISOString()
  return [
    ...(known?.isMuted === true
      ? [
          {
            text: 'Unmute this channel',
            hint,
            run: () => void change({ state: 'on' }, 'Channel unmuted.'),
          },
        ]
      : [
          {
            text: 'Mute this channel',
            hint,
            run: () => void change({ state: 'mute' }, 'Channel muted.'),
          },
          {
            text: 'Mute this channel for 1 hour',
            hint,
            run: () =>
              void change({ state: 'mute', muteUntil: muteUntil() }, 'Channel muted for 1 hour.'),
          },
        ]),
    {
      text: 'Channel settings',
      hint,
      run: () => route(toChannelPath(project, channel)),
    },
  ]
}

async function leave(): Promise<void> {
  const failure = await signOut()
  if (failure) showToast(failure.message)
}

async function copyLink(link: string): Promise<void> {
  showToast((await copyText(link)) ? 'Link copied.' : 'The browser did not allow copying.')
}
