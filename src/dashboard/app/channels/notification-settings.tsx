import { useId, useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { Loaded } from '../components/loaded.tsx'
import { showToast } from '../components/toast.tsx'
import { MINUTE_MS, useQuery } from '../components/use-query.ts'
import { channelChanges } from '../feed/use-channels.ts'
import { fromInputTime } from '../input-time.ts'
import { toClockTime, toDateTime } from '../time.ts'
import { changeSetting, readSetting, type Setting, type SettingChange } from './api.ts'
import { MUTE_DURATIONS, toMuteEnd, toSettingChange } from './mute.ts'

interface NotificationSettingsOptions {
  project: string
  /** Undefined for the whole project. */
  channel?: string | undefined
  hint: string
}

/** The notification settings of the signed-in member, which every role can change. */
export function NotificationSettings({ project, channel, hint }: NotificationSettingsOptions) {
  const query = useQuery(`${project} ${channel}`, () => readSetting(project, channel), {
    when: channelChanges,
    everyMs: MINUTE_MS,
  })
  const id = useId()
  const [isPicking, setPicking] = useState(false)

  async function change(before: Setting, wish: SettingChange) {
    const result = await changeSetting(project, channel, wish)
    if (result.ok) {
      setPicking(false)
      showToast({
        message: 'Notification settings saved.',
        undo: () => changeSetting(project, channel, toSettingChange(before)),
      })
    }
    return result
  }

  /** Saves the state chosen in `select`. After a failure, `select` shows the old state. */
  async function choose(setting: Setting, select: HTMLSelectElement) {
    const { value } = select
    if (value === 'pick') return setPicking(true)
    setPicking(false)
    if (value === 'until') return
    const span = MUTE_DURATIONS.find(one => one.value === value)
    const result = await change(
      setting,
      span
        ? {
            state: 'mute',
            muteUntil: new Date(toMuteEnd(span.value, Date.now())).toISOString(),
          }
        : { state: value as SettingChange['state'] },
    )
    if (result.ok) return
    select.value = toValue(setting)
    showToast(result.failure.message)
  }

  /** Saves whether bursts are collapsed. */
  async function chooseBursts(setting: Setting, select: HTMLSelectElement) {
    const { value } = select
    const collapse = value === 'default' ? null : value === 'collapse'
    const result = await change(setting, { ...toSettingChange(setting), collapse })
    if (result.ok) return
    select.value = toBursts(setting)
    showToast(result.failure.message)
  }

  return (
    <div class="notification-settings">
      <Loaded query={query}>
        {setting => (
          <>
            <div class="field">
              <label for={id}>My notifications</label>
              <p class="hint" id={`${id}-hint`}>
                {setting.isDefault && setting.state === 'mute'
                  ? 'You muted the whole project.'
                  : hint}
              </p>
              <div class="input">
                <select
                  id={id}
                  aria-describedby={`${id}-hint`}
                  value={isPicking ? 'pick' : toValue(setting)}
                  onChange={({ currentTarget }) => void choose(setting, currentTarget)}
                >
                  {channel !== undefined && <option value="default">Use project default</option>}
                  <option value="on">On</option>
                  {setting.muteUntil !== null && (
                    <option value="until">
                      Muted until {toDateTime(Date.parse(setting.muteUntil))}
                    </option>
                  )}
                  <option value="mute">Muted</option>
                  {MUTE_DURATIONS.map(({ value, text }) => (
                    <option key={value} value={value}>
                      {text}
                      {value === 'morning' && `, ${toClockTime(toMuteEnd(value, Date.now()))}`}
                    </option>
                  ))}
                  <option value="pick">Mute until…</option>
                </select>
              </div>
            </div>
            {isPicking && (
              <Form
                action="Mute"
                send={value =>
                  change(setting, { state: 'mute', muteUntil: fromInputTime(value('muteUntil')) })
                }
                onDone={() => setPicking(false)}
              >
                <Field name="muteUntil" label="Until" type="datetime-local" />
              </Form>
            )}
            <div class="field">
              <label for={`${id}-bursts`}>Bursts</label>
              <p class="hint" id={`${id}-bursts-hint`}>
                After 10 notifications from one channel in a minute, the rest are collapsed into one
                with a count.
              </p>
              <div class="input">
                <select
                  id={`${id}-bursts`}
                  aria-describedby={`${id}-bursts-hint`}
                  value={toBursts(setting)}
                  onChange={({ currentTarget }) => void chooseBursts(setting, currentTarget)}
                >
                  {channel !== undefined && <option value="default">Use project default</option>}
                  <option value="collapse">Collapse</option>
                  <option value="each">Do not collapse</option>
                </select>
              </div>
            </div>
          </>
        )}
      </Loaded>
    </div>
  )
}

function toValue({ isDefault, state, muteUntil }: Setting): string {
  return isDefault ? 'default' : muteUntil === null ? state : 'until'
}

function toBursts({ isCollapseDefault, collapse }: Setting): string {
  return isCollapseDefault ? 'default' : collapse ? 'collapse' : 'each'
}
