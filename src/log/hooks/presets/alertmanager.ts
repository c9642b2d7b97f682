import { createHash } from 'node:crypto'
import { isObject, readPath } from '../../events/metadata-values.ts'
import { ENDED, findText, toLevel, type Draft, type Preset, type Received } from './received.ts'

/** The end of an alert that fires, as Go writes no time. */
const NO_TIME = /^0001-01-01T/

/** The webhook of Prometheus Alertmanager. */
export const alertmanager: Preset = received => toAlerts(received, ['generatorURL', 'dashboardURL'])

/** Returns an event for each alert. `links` are the fields that can have its URL. */
export function toAlerts({ body }: Received, links: readonly string[]): Draft[] {
  const alerts = readPath(body, ['alerts'])
  if (!Array.isArray(alerts) || !alerts.every(isObject)) return []
  return alerts.map((alert: object): Draft => {
    const find = (path: string) => findText(alert, path)
    const hasEnd = !NO_TIME.test(find('endsAt') ?? '0001-01-01T')
    // The status of the group is not that of each alert.
    const isFiring = !hasEnd || (find('status') ?? 'resolved') !== 'resolved'
    const labels = readPath(alert, ['labels'])
    const thread = find('fingerprint') ?? toFingerprint(labels)
    return {
      title: find('annotations.summary') ?? find('labels.alertname') ?? 'Alert',
      description: find('annotations.description') ?? find('annotations.message'),
      level: toLevel(find('labels.severity')),
      thread,
      state: isFiring ? 'firing' : 'resolved',
      url: links.map(find).find(Boolean),
      key: `${thread} ${find('startsAt')} ${isFiring}`,
      // Alertmanager repeats an alert while it fires, and when another one of its group changes.
      knownIn: isFiring ? ['firing'] : ENDED,
      metadata: { ...alert, receiver: findText(body, 'receiver') ?? null },
    }
  })
}

/** Identifies an alert by its labels, whatever their order. */
function toFingerprint(labels: unknown): string {
  const pairs = isObject(labels) ? Object.entries(labels).toSorted() : []
  return createHash('sha256').update(JSON.stringify(pairs)).digest('hex').slice(0, 16)
}
