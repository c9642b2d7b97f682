import { isObject, readPath } from '../../events/metadata-values.ts'
import type { Draft } from './received.ts'
import { findText, type Preset } from './received.ts'

/** The statuses of a monitor, by their numbers. */
const STATUSES: readonly { text: string; fields: Partial<Draft> }[] = [
  { text: 'is down', fields: { state: 'firing', level: 'high' } },
  { text: 'is up', fields: { state: 'resolved' } },
  { text: 'is being checked again', fields: {} },
  { text: 'is under maintenance', fields: {} },
]

/** The webhook notification of Uptime Kuma. */
export const uptimeKuma: Preset = ({ body, hook }) => {
  const find = (path: string) => findText(body, path)
  const message = find('msg')
  // A test, and a warning of a certificate, are about no heartbeat.
  if (!isObject(readPath(body, ['heartbeat']))) return message ? [{ title: message }] : []
  const status = find('heartbeat.status') ?? ''
  const monitor = find('heartbeat.monitorID') ?? find('monitor.id')
  const time = find('heartbeat.time')
  const { text, fields } = STATUSES[/^[0-3]$/.test(status) ? Number(status) : -1] ?? {}
  if (text === undefined || monitor === undefined) return []
  return [
    {
      ...fields,
      title: `${find('monitor.name') ?? `Monitor ${monitor}`} ${text}`,
      description: find('heartbeat.msg') ?? message,
      // Several programs can count their monitors from 1.
      thread: `${hook.id} ${monitor}`,
      url: find('monitor.url'),
      key: time && `${monitor} ${time} ${status}`,
    },
  ]
}
