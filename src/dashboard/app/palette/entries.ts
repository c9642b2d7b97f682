import type { Account } from '../../../accounts/schema.ts'
import type { ProjectChannel } from '../../../channels/schema.ts'
import { changeSetting, readSetting, type SettingChange } from '../channels/api.ts'
import { toMuteEnd, toSettingChange } from '../channels/mute.ts'
import { copyText } from '../copy-text.ts'
import { listProjectLinks, listSettingsLinks, ACCOUNT_LINKS } from '../components/navigation.tsx'
import { showToast } from '../components/toast.tsx'
import { toChannelPath, toFeedPath, toOrganizationPath } from '../paths.ts'
import { signOut } from '../session.ts'
import { chooseTheme, THEMES } from '../theme.ts'
import type { Searchable } from './match.ts'

/** Somewhere to go, or something to do. */
export interface Entry extends Searchable {
  /** What it is, or the keys that do the same. */
  hint: string
  run(): void
}

export interface PaletteContext {
  account: Account
  project: string | undefined
  channels: readonly ProjectChannel[]
  /** The id of the channel that is looked at. */
  channel: string | undefined
  route(path: string): void
  onShortcuts(): void
}

/** All that can be done from where the reader is, what concerns the place first. */
export function listEntries(here: PaletteContext): Entry[] {
  const { account, project, channels, route } = here
  const go = (hint: string, path: string, text: string, name?: string): Entry => ({
    text,
    ...(name !== undefined && { name }),
    hint,
    run: () => route(path),
  })
  const places = project === undefined ? [] : listProjectLinks(project)
  return [
    ...listOfChannel(here),
    { text: 'Copy link', hint: 'To this page', run: () => void copyLink(location.href) },
    ...places.map(({ key, path, name }) => go(`g ${key}`, path, name)),
    ...channels.map(({ id, name }) => go('Channel', toFeedPath(project ?? '', id), '', name)),
    ...account.organizations.flatMap(({ projects }) =>
      projects
        .filter(({ id }) => id !== project)
        .map(({ id, name }) => go('Project', toFeedPath(id), '', name)),
    ),
    ...listSettingsLinks(account, project)
      .filter(({ icon }) => icon !== 'organization')
      .map(({ key, path, name }) => go(key ? `g ${key}` : 'Page', path, `Settings: ${name}`)),
    ...account.organizations.map(({ id, name }) =>
      go('Organization', toOrganizationPath(id), 'Settings:', name),
    ),
    ...ACCOUNT_LINKS.map(({ path, name }) => go('Page', path, name)),
    ...THEMES.map(one => ({
      text: `Colours: ${one}`,
      hint: 'Theme',
      run: () => chooseTheme(one),
    })),
    { text: 'Keys', hint: '?', run: here.onShortcuts },
    { text: 'Documentation', hint: 'Page', run: () => location.assign('/docs') },
    { text: 'Sign out', hint: 'Account', run: () => void signOut() },
  ]
}

function listOfChannel({ project, channel, channels, route }: PaletteContext): Entry[] {
  if (project === undefined || channel === undefined) return []
  const known = channels.find(({ id }) => id === channel)
  const hint = known?.name ?? 'Channel'
  const change = async (wish: SettingChange, message: string) => {
    const before = await readSetting(project, channel)
    const result = before.ok ? await changeSetting(project, channel, wish) : before
    if (!before.ok || !result.ok)
      return showToast({ message: result.ok ? '' : result.failure.message })
    showToast({
      message,
      undo: () => changeSetting(project, channel, toSettingChange(before.data)),
    })
  }
  const muteUntil = () => new Date(toMuteEnd('hour', Date.now())).toISOString()
  return [
    ...(known?.isMuted === true
      ? [
          {
            text: 'Unmute this channel',
            hint,
            run: () => void change({ state: 'on' }, 'The channel is on.'),
          },
        ]
      : [
          {
            text: 'Mute this channel',
            hint,
            run: () => void change({ state: 'mute' }, 'The channel is muted.'),
          },
          {
            text: 'Mute this channel for an hour',
            hint,
            run: () =>
              void change(
                { state: 'mute', muteUntil: muteUntil() },
                'The channel is muted for an hour.',
              ),
          },
        ]),
    {
      text: 'Settings of this channel',
      hint,
      run: () => route(toChannelPath(project, channel)),
    },
  ]
}

async function copyLink(link: string): Promise<void> {
  showToast({
    message: (await copyText(link)) ? 'The link is copied.' : 'The browser refused to copy.',
  })
}
