import type { Card, CardGroup } from '../../../log/insights/schema.ts'

/** The periods that a card can be set to, in hours. */
export const PERIODS = {
  1: 'Last hour',
  24: 'Last 24 hours',
  168: 'Last 7 days',
  720: 'Last 30 days',
  2160: 'Last 90 days',
} as const satisfies Record<number, string>

export const KINDS = {
  series: 'Count over time',
  number: 'Number',
  top: 'Top values',
} as const satisfies Record<Card['kind'], string>

export const GROUPS = {
  channel: 'Channel',
  tag: 'Tag',
  user: 'User',
  source: 'Source',
  metadata: 'Metadata value',
} as const satisfies Record<CardGroup, string>

const TITLES = {
  channel: 'Top channels',
  tag: 'Top tags',
  user: 'Top users',
  source: 'Top sources',
} as const satisfies Record<Exclude<CardGroup, 'metadata'>, string>

/** The title of a card: its own, or one that says what it counts. */
export function toTitle({ title, kind, groupBy, metadataPath }: Card): string {
  if (title !== null) return title
  if (kind === 'series') return 'Events over time'
  if (groupBy === null) return 'Events'
  if (groupBy === 'metadata') return `Top values of ${metadataPath ?? ''}`
  return TITLES[groupBy]
}

/** The name of the last `hours` hours. */
export function toPeriodName(hours: number): string {
  const known = (PERIODS as Readonly<Record<number, string>>)[hours]
  return known ?? `Last ${hours.toLocaleString()} hours`
}
