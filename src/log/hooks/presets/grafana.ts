import { toAlerts } from './alertmanager.ts'
import type { Preset } from './received.ts'

/** The webhook contact point of Grafana. Its alerts have the fields of Alertmanager's. */
export const grafana: Preset = received =>
  toAlerts(received, ['panelURL', 'dashboardURL', 'generatorURL'])
