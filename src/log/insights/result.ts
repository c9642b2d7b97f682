import { toArray } from '../../database/arrays.ts'
import { QUERY_CANCELED, sqlState, type Queryable } from '../../database/sql.ts'
import { listChannelNames } from '../channels/channels.ts'
import { buildHistogram, isByChannel } from '../events/histogram.ts'
import type { ScanLimits } from '../events/log-scan.ts'
import { resolveFilters } from '../events/resolved-filters.ts'
import type { SearchFilters } from '../events/search-filters.ts'
import { toSearchFilters } from '../events/search-schema.ts'
import { listUserNames } from '../identities/user-names.ts'
import { toId } from '../../base/ids.ts'
import {
  areKeptSince,
  countByChannel,
  toPeriod,
  type Counts,
  type Period,
} from './channel-counts.ts'
import type { Card, CardGroup, CardResult, CountsResult } from './schema.ts'
import { countValues } from './value-counts.ts'

/** References of users that are resolved. The rarer ones count as users of their own. */
const MAX_REFERENCES = 1_000

/** How many values a card shows as bars. */
const MAX_VALUES = 8

type CardContent = Pick<Card, 'kind' | 'groupBy' | 'metadataPath' | 'q' | 'hours'>

/**
 * Counts what a card shows. Counts are exact when only channels are searched and grouped.
 * Otherwise the events are scanned from the newest back for about 150 ms, and `completeSince` tells
 * how far that came.
 */
export async function readResult(
  sql: Queryable,
  projectId: string,
  card: CardContent,
  { nowMs, limits }: { nowMs: number; limits?: ScanLimits },
): Promise<CardResult> {
  const filters = toSearchFilters(card)
  const period = toPeriod(card.hours, nowMs)
  if (card.kind === 'series') {
    const range = { fromMs: period.fromMs, toMs: nowMs, nowMs }
    const histogram = await buildHistogram(sql, projectId, filters, range, limits)
    return { kind: 'series', histogram }
  }
  const counted = await countMatches(sql, projectId, card, filters, period, limits)
  const { groupBy } = card
  const values =
    groupBy === 'user' ? await sumByUser(sql, projectId, counted.values) : counted.values
  return toResult(sql, projectId, { ...counted, values, card, period })
}

interface Counted {
  all: Counts
  values: ReadonlyMap<string, number>
  /** Undefined when the whole period was counted. */
  completeSinceMs: number | undefined
  /** False when the period before was not counted to its end, or its events are not all kept. */
  hasPrevious: boolean
}

async function countMatches(
  sql: Queryable,
  projectId: string,
  { kind, groupBy, metadataPath }: CardContent,
  filters: SearchFilters,
  period: Period,
  limits: ScanLimits | undefined,
): Promise<Counted> {
  const wantsPrevious = kind !== 'top'
  const after = Math.max(
    filters.after ?? -Infinity,
    wantsPrevious ? period.previousFromMs : period.fromMs,
  )
  const before = Math.min(filters.before ?? Infinity, period.toMs)
  const resolved = await resolveFilters(sql, projectId, { ...filters, after, before })
  const channels = resolved ?? { channelIds: undefined, withoutChannelIds: [] }
  const hasPrevious =
    wantsPrevious && (await areKeptSince(sql, projectId, channels, period.previousFromMs))
  const nothing = { total: 0, previous: 0 }
  if (!resolved) {
    return { all: nothing, values: new Map(), completeSinceMs: undefined, hasPrevious }
  }
  const isExact =
    isByChannel(filters) &&
    (groupBy === null || groupBy === 'channel') &&
    filters.after === null &&
    filters.before === null
  if (isExact) {
    try {
      const counts = await countByChannel(sql, projectId, resolved, period)
      const all = [...counts.values()].reduce(
        (sum, { total, previous }) => ({
          total: sum.total + total,
          previous: sum.previous + previous,
        }),
        nothing,
      )
      const values = new Map([...counts].map(([id, { total }]) => [id, total]))
      return { all, values, completeSinceMs: undefined, hasPrevious }
    } catch (error) {
      // The statement timeout has ended a count over very many hours and channels.
      if (sqlState(error) !== QUERY_CANCELED) throw error
    }
  }
  const path = metadataPath?.split('.') ?? []
  const scanned = await countValues(
    sql,
    projectId,
    resolved,
    { period, groupBy, path, hasPrevious },
    limits,
  )
  const { completeSinceMs } = scanned
  return {
    ...scanned,
    completeSinceMs:
      completeSinceMs !== undefined && completeSinceMs > period.fromMs
        ? completeSinceMs
        : undefined,
    hasPrevious: hasPrevious && completeSinceMs === undefined,
  }
}

async function toResult(
  sql: Queryable,
  projectId: string,
  {
    all,
    values,
    completeSinceMs,
    hasPrevious,
    card,
    period,
  }: Counted & {
    card: CardContent
    period: Period
  },
): Promise<CountsResult> {
  const { groupBy } = card
  const found = groupBy === null ? [] : [...values].filter(([, total]) => total > 0)
  const shown = found.toSorted(byCount).slice(0, MAX_VALUES)
  const names = await nameValues(sql, projectId, {
    groupBy,
    values: shown.map(([value]) => value),
  })
  return {
    kind: 'counts',
    from: new Date(period.fromMs).toISOString(),
    to: new Date(period.toMs).toISOString(),
    total: all.total,
    previous: hasPrevious ? all.previous : null,
    completeSince: completeSinceMs === undefined ? null : new Date(completeSinceMs).toISOString(),
    values: shown.map(([value, total]) => ({
      value: groupBy === 'channel' ? toId('chn', value) : value,
      name: names.get(value) ?? null,
      total,
    })),
    hasMore: found.length > shown.length,
  }
}

/** The most matches first, and equally frequent values in a fixed order. */
function byCount([a, one]: [string, number], [b, other]: [string, number]): number {
  return other - one || (a < b ? -1 : 1)
}

/** Sums the counts of references, which are user_ids and aliases, by the user_id of their owner. */
async function sumByUser(
  sql: Queryable,
  projectId: string,
  counts: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const references = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MAX_REFERENCES)
    .map(([reference]) => reference)
  const rows = await sql<{ alias: string; user_id: string }[]>`
    select r.reference as alias, u.user_id
    from unnest(${toArray(references)}::text[]) as r (reference)
      cross join lateral user_of_name(${projectId}, r.reference) as u (user_id)
    where u.user_id <> r.reference
  `
  const owners = new Map(rows.map(({ alias, user_id }) => [alias, user_id]))
  const sums = new Map<string, number>()
  for (const [reference, total] of counts) {
    const user = owners.get(reference) ?? reference
    sums.set(user, (sums.get(user) ?? 0) + total)
  }
  return sums
}

/** Returns the names of channels (by uuid) and users (by user_id). Other values have none. */
async function nameValues(
  sql: Queryable,
  projectId: string,
  { groupBy, values }: { groupBy: CardGroup | null; values: readonly string[] },
): Promise<Map<string, string>> {
  if (values.length === 0) return new Map()
  if (groupBy === 'channel') return listChannelNames(sql, projectId, values)
  if (groupBy !== 'user') return new Map()
  const users = await listUserNames(sql, projectId, values)
  return new Map(users.map(({ userId, name }) => [userId, name]))
}
