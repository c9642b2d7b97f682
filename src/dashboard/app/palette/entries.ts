import type { Account } from '../../../accounts/schema.ts'
import type { ProjectChannel } from '../../../channels/schema.ts'
import { changeSetting, readSetting, type SettingChange } from '../channels/api.ts'
import { toMuteEnd, toSettingChange } from '../channels/mute.ts'
import { copyText } from '../copy-text.ts'
import { listProjectLinks, listSettingsLinks, listAccountLinks } from '../components/navigation.tsx'
import { showToast } from '../components/toast.tsx'
import { toChannelPath, toFeedPath, toOrganizationPath } from '../paths.ts'
import { signOut } from '../session.ts'
import { chooseTheme, THEMES } from '../theme.ts'
import type { Searchable } from './match.ts'
import { t } from '../locales/translate.tsx'

/** A page or an action in the command palette. */
export interface Entry extends Searchable {
  /** Its kind, or its keyboard shortcut. */
  hint: string
  run(): void
}

export interface PaletteContext {
  account: Account
  project: string | undefined
  channels: readonly ProjectChannel[]
  /** The ID of the current channel. */
  channel: string | undefined
  route(path: string): void
  onShortcuts(): void
}

const THEME_ACTIONS = {
  system: 'palette.themeSystem',
  light: 'palette.themeLight',
  dark: 'palette.themeDark',
} as const

/** All entries for the current page, starting with those for its channel. */
export function listEntries(here: PaletteContext): Entry[] {
  const { account, project, channels, route } = here
  const go = (hint: string, path: string, text: string, name?: string): Entry => ({
    text,
    ...(name !== undefined && { name }),
    hint,
    run: () => route(path),
  })
  const links = project === undefined ? [] : listProjectLinks(project)
  return [
    ...listChannelEntries(here),
    {
      text: t('palette.copyLink'),
      hint: t('palette.action'),
      run: () => void copyLink(location.href),
    },
    ...links.map(({ key, path, name }) => go(`g ${key}`, path, name)),
    ...channels.map(({ id, name }) =>
      go(t('palette.channel'), toFeedPath(project ?? '', id), '', name),
    ),
    ...account.organizations.flatMap(({ projects }) =>
      projects
        .filter(({ id }) => id !== project)
        .map(({ id, name }) => go(t('common.project'), toFeedPath(id), '', name)),
    ),
    ...listSettingsLinks(account, project)
      .filter(({ icon }) => icon !== 'organization')
      .map(({ key, path, name }) =>
        go(key ? `g ${key}` : t('palette.page'), path, t('palette.settings', { name })),
      ),
    ...account.organizations.map(({ id, name }) =>
      go(
        t('common.organization'),
        toOrganizationPath(id),
        t('palette.settings', { name: '' }),
        name,
      ),
    ),
    ...listAccountLinks().map(({ path, name }) => go(t('palette.page'), path, name)),
    ...THEMES.map(one => ({
      text: t(THEME_ACTIONS[one]),
      hint: t('palette.action'),
      run: () => chooseTheme(one),
    })),
    { text: t('palette.shortcuts'), hint: '?', run: here.onShortcuts },
    {
      text: t('common.documentation'),
      hint: t('palette.page'),
      run: () => location.assign('/docs'),
    },
    { text: t('common.signOut'), hint: t('common.account'), run: () => void signOut() },
  ]
}

function listChannelEntries({ project, channel, channels, route }: PaletteContext): Entry[] {
  if (project === undefined || channel === undefined) return []
  const known = channels.find(({ id }) => id === channel)
  const hint = known?.name ?? t('palette.channel')
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
            text: t('palette.unmute'),
            hint,
            run: () => void change({ state: 'on' }, t('palette.unmuted')),
          },
        ]
      : [
          {
            text: t('palette.mute'),
            hint,
            run: () => void change({ state: 'mute' }, t('palette.muted')),
          },
          {
            text: t('palette.muteHour'),
            hint,
            run: () =>
              void change({ state: 'mute', muteUntil: muteUntil() }, t('palette.mutedHour')),
          },
        ]),
    {
      text: t('palette.channelSettings'),
      hint,
      run: () => route(toChannelPath(project, channel)),
    },
  ]
}

async function copyLink(link: string): Promise<void> {
  showToast({
    message: t((await copyText(link)) ? 'palette.linkCopied' : 'palette.linkNotCopied'),
  })
}
