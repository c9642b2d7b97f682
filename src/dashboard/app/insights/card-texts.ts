import type { Card, CardGroup } from '../../../insights/schema.ts'
import type { MessageKey } from '../locales/catalogue.ts'
import { t } from '../locales/translate.tsx'

/** The periods that a card can be set to, in hours. */
export const PERIODS = {
  1: 'insights.period1h',
  24: 'insights.period24h',
  168: 'insights.period7d',
  720: 'insights.period30d',
  2160: 'insights.period90d',
} as const satisfies Record<number, MessageKey>

export const KINDS = {
  series: 'insights.kindSeries',
  number: 'insights.kindNumber',
  top: 'insights.kindTop',
  table: 'insights.kindTable',
} as const satisfies Record<Card['kind'], MessageKey>

export const GROUPS = {
  channel: 'insights.groupChannel',
  tag: 'insights.groupTag',
  user: 'insights.groupUser',
  source: 'insights.groupSource',
  metadata: 'insights.groupMetadata',
} as const satisfies Record<CardGroup, MessageKey>

const TITLES = {
  channel: 'insights.titleChannel',
  tag: 'insights.titleTag',
  user: 'insights.titleUser',
  source: 'insights.titleSource',
} as const satisfies Record<Exclude<CardGroup, 'metadata'>, MessageKey>

/** The title of a card: its own, or one that says what it counts. */
export function toTitle({ title, kind, groupBy, metadataPath }: Card): string {
  if (title !== null) return title
  if (kind === 'series') return t('insights.titleSeries')
  if (groupBy === null) return t('insights.titleNumber')
  if (groupBy === 'metadata') return t('insights.titleMetadata', { path: metadataPath ?? '' })
  return t(TITLES[groupBy])
}

/** The name of the last `hours` hours. */
export function toPeriodName(hours: number): string {
  const known = (PERIODS as Readonly<Record<number, MessageKey>>)[hours]
  return known === undefined ? t('insights.periodHours', { hours }) : t(known)
}
