import type { Card, CardGroup } from '../../../log/insights/schema.ts'

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
