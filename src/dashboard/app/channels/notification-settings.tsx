import { useState } from 'preact/hooks'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Loaded, MINUTE_MS, useQuery, useRoute } from '../components/query.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { channelChanges } from '../feed/use-channels.ts'
import { request } from '../request.ts'
import { fromInputTime, toClockTime, toDateTime } from '../time.ts'
import { changeSetting, readSetting } from './api.ts'
import {
  MUTE_DURATIONS,
  toMuteEnd,
  toSettingChange,
  type Setting,
  type SettingChange,
} from './mute.ts'

const PROJECT_DEFAULT = { value: 'default', text: 'Use project default' }

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
    if (result.ok) {
      if (span && setting.muteUntil !== null) select.value = 'until'
      return
    }
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
            <Select
              name="state"
              label="My notifications"
              hint={
                setting.isDefault && setting.state === 'mute'
                  ? 'You muted the whole project.'
                  : hint
              }
              value={isPicking ? 'pick' : toValue(setting)}
              options={[
                ...(channel === undefined ? [] : [PROJECT_DEFAULT]),
                { value: 'on', text: 'On' },
                ...listMutes(setting.muteUntil),
                { value: 'pick', text: 'Mute until…' },
              ]}
              onChange={(_, select) => void choose(setting, select)}
            />
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
            <Select
              name="bursts"
              label="Bursts"
              hint="After 10 notifications from one channel in a minute, the rest are collapsed into one with a count."
              value={toBursts(setting)}
              options={[
                ...(channel === undefined ? [] : [PROJECT_DEFAULT]),
                { value: 'collapse', text: 'Collapse' },
                { value: 'each', text: 'Do not collapse' },
              ]}
              onChange={(_, select) => void chooseBursts(setting, select)}
            />
          </>
        )}
      </Loaded>
      <DeviceMute id={channel ?? project} />
    </div>
  )
}

/** Mutes a channel or a project on the device of this browser alone, if it gets notifications. */
function DeviceMute({ id }: { id: string }) {
  const { data, refetch } = useRoute('GET /api/push/subscriptions')
  const device = data?.items.find(({ isCurrent }) => isCurrent)
  if (!device) return null
  const { id: subscriptionId, mutes } = device
  const current = mutes.filter(({ until }) => until === null || Date.parse(until) > Date.now())
  const mute = current.find(one => one.id === id)
  const state = mute ? (mute.until === null ? 'mute' : 'until') : 'on'
  const save = (changed: typeof mutes) =>
    request('PATCH /api/push/subscriptions/:subscriptionId', { subscriptionId, mutes: changed })

  async function choose(value: string, select: HTMLSelectElement) {
    if (value === 'until') return
    const span = MUTE_DURATIONS.find(one => one.value === value)
    const until = span ? new Date(toMuteEnd(span.value, Date.now())).toISOString() : null
    const rest = current.filter(one => one.id !== id)
    const result = await save(value === 'on' ? rest : [...rest, { id, until }])
    const message = value === 'on' ? 'On again on this device.' : 'Muted on this device.'
    const isSaved = showResult(result, { message, undo: () => save(mutes), onUndone: refetch })
    if (isSaved) await refetch()
    select.value = isSaved ? (span ? 'until' : value) : state
  }

  return (
    <Select
      name="device"
      label="On this device"
      value={state}
      options={[{ value: 'on', text: 'Not muted' }, ...listMutes(mute?.until ?? null)]}
      onChange={(value, select) => void choose(value, select)}
    />
  )
}

/** The choices of a mute: its end if it has one, no end, and the usual times. */
function listMutes(until: string | null) {
  return [
    ...(until === null
      ? []
      : [{ value: 'until', text: `Muted until ${toDateTime(Date.parse(until))}` }]),
    { value: 'mute', text: 'Muted' },
    ...MUTE_DURATIONS.map(({ value, text }) => {
      const end = toClockTime(toMuteEnd(value, Date.now()))
      return { value, text: value === 'morning' ? `${text}, ${end}` : text }
    }),
  ]
}

function toValue({ isDefault, state, muteUntil }: Setting): string {
  return isDefault ? 'default' : muteUntil === null ? state : 'until'
}

function toBursts({ isCollapseDefault, collapse }: Setting): string {
  return isCollapseDefault ? 'default' : collapse ? 'collapse' : 'each'
}
