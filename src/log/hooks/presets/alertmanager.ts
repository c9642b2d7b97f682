import { isObject, readPath } from '../../events/metadata-values.ts'
import { findText, toHash, toLevel, type Draft, type Preset } from './received.ts'

/** The end of an alert that fires, as Go writes no time. */
const NO_TIME = /^0001-01-01T/

const MAX_RECEIVER = 255
/** The most alerts of a request that are read. Real ones of 1 MiB are fewer. */
const MAX_ALERTS = 5_000

/** The webhooks of Prometheus Alertmanager and Grafana. An event for each alert. */
export const alertmanager: Preset = ({ body, hook: { preset } }) => {
  const all = readPath(body, ['alerts'])
  const alerts = Array.isArray(all) ? all.slice(0, MAX_ALERTS) : []
  if (!alerts.every(isObject)) return []
  const receiver = findText(body, 'receiver')?.slice(0, MAX_RECEIVER) ?? null
  const links = [preset === 'grafana' ? 'panelURL' : 'generatorURL', 'dashboardURL', 'generatorURL']
  return alerts.map((alert: object): Draft => {
    const find = (path: string) => findText(alert, path)
    const hasEnd = !NO_TIME.test(find('endsAt') ?? '0001-01-01T')
    // The status of the group is not that of each alert.
    const isFiring = !hasEnd || (find('status') ?? 'resolved') !== 'resolved'
    const labels = readPath(alert, ['labels'])
    const thread = find('fingerprint') ?? toFingerprint(labels, readPath(alert, ['annotations']))
    return {
      title: find('annotations.summary') ?? find('labels.alertname') ?? 'Alert',
      description: find('annotations.description') ?? find('annotations.message'),
      level: toLevel(find('labels.severity')),
      thread,
      state: isFiring ? 'firing' : 'resolved',
      url: links.map(find).find(Boolean),
      key: `${thread} ${find('startsAt')} ${isFiring}`,
      // Alertmanager repeats an alert while it fires, and when another one of its group changes.
      knownIn: isFiring ? ['firing'] : ['resolved', 'succeeded', 'failed'],
      metadata: { ...alert, receiver },
    }
  })
}

/** Identifies an alert by its labels, or else by its annotations, whatever their order. */
function toFingerprint(...fields: unknown[]): string {
  const pairs = fields.map(one =>
    isObject(one) ? Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)) : [],
  )
  return toHash(JSON.stringify(pairs.find(({ length }) => length > 0) ?? []))
}
