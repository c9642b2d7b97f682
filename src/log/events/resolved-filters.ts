import { findChannels } from '../channels/channels.ts'
import type { Queryable } from '../../database/sql.ts'
import type { Level } from '../channels/level.ts'
import type { State } from './state.ts'
import { listReferences, resolveUser } from '../identities/users.ts'
import { listSeqRanges, type SeqRange } from './seq-ranges.ts'
import {
  isWholeName,
  readExactUser,
  type HasField,
  type SearchFilters,
  type ValueFilter,
} from './search-filters.ts'
import { toArray } from '../../database/arrays.ts'

/** The terms of a search, or of an alternative of it, as database values. */
export interface ResolvedTerms {
  /** Undefined does not filter, as for `users`. */
  channelIds: string[] | undefined
  withoutChannelIds: string[]
  users: ResolvedUsers | undefined
  withoutUsers: ResolvedUsers
  sources: ValueFilter
  levels: ValueFilter<Level>
  states: ValueFilter<State>
  threads: ValueFilter
  tags: ValueFilter
  metadata: ValueFilter
  has: ValueFilter<HasField>
  /** The texts that an event must have, and must not have. */
  texts: TextPattern[]
  withoutTexts: TextPattern[]
  afterMs: number | null
  beforeMs: number | null
  groups: ResolvedGroup[]
}

/** The time for the beginnings of names in a search. Each event is compared with later ones. */
const NAMES_MS = 50

/** The users that match one of these. Beginnings and names are folded texts. */
export interface ResolvedUsers {
  /** User_ids and aliases of events. */
  references: string[]
  /** Beginnings of the user_id or alias of an event. */
  beginnings: string[]
  /** Names that are compared with each event's user, because too many users have such a name. */
  names: UserName[]
}

/** Any name of a user, or its beginning. */
export interface UserName {
  /** A folded text. */
  text: string
  isWhole: boolean
}

/** The alternatives of a group that some event can match. */
export interface ResolvedGroup {
  isExcluded: boolean
  terms: ResolvedTerms[]
}

/** Search filters as database values. */
export interface ResolvedFilters extends ResolvedTerms {
  /** The parts of the log that can contain matches, in the order of seq. */
  ranges: SeqRange[]
  /** Limits the scan to the events of a thread. */
  threadSeq?: number | undefined
}

/**
 * Looks up the channels, users and words of filters, the beginnings of names for `namesMs`. Returns
 * undefined when no event can match.
 */
export async function resolveFilters(
  sql: Queryable,
  projectId: string,
  filters: SearchFilters,
  { namesMs = NAMES_MS } = {},
): Promise<ResolvedFilters | undefined> {
  const deadline = performance.now() + namesMs
  const { after, before, words, phrases, sources, levels, states, threads, tags, groups } = filters
  const lists = [words, phrases, sources, levels, states, threads, tags].map(({ is }) => is)
  const ranges = await listSeqRanges(sql, projectId, {
    afterMs: after,
    beforeMs: before,
    // The search index reads every bucket of a range, including empty ones.
    endsAtHead: [...lists, groups].some(list => list.length > 0),
  })
  const terms = ranges.length > 0 && (await resolveTerms(sql, { projectId, deadline }, filters))
  return terms ? { ...terms, ranges } : undefined
}

/** Resolves the terms of filters and of their groups. Returns undefined if no event can match. */
async function resolveTerms(
  sql: Queryable,
  limits: { projectId: string; deadline: number },
  filters: SearchFilters,
): Promise<ResolvedTerms | undefined> {
  const { channels, users, words, phrases, sources, levels, states, threads } = filters
  const { tags, metadata, has } = filters
  const { projectId } = limits
  const channelIds =
    channels.is.length > 0 ? await findChannels(sql, projectId, channels.is) : undefined
  const texts = await readTextPatterns(sql, words.is, phrases.is)
  const hasText = words.is.length + phrases.is.length > 0
  if (channelIds?.length === 0 || (hasText && texts.length === 0)) return undefined
  const groups: ResolvedGroup[] = []
  for (const group of filters.groups) {
    const found: ResolvedTerms[] = []
    for (const alternative of group.filters) {
      const terms = await resolveTerms(sql, limits, alternative)
      if (terms) found.push(terms)
    }
    if (found.length > 0) groups.push({ isExcluded: group.isExcluded, terms: found })
    else if (!group.isExcluded) return undefined
  }
  return {
    ...{ sources, levels, states, threads, tags, metadata, has, channelIds, groups },
    withoutChannelIds: await findChannels(sql, projectId, channels.not),
    users: users.is.length > 0 ? await resolveUsers(sql, limits, users.is) : undefined,
    withoutUsers: await resolveUsers(sql, limits, users.not),
    texts,
    withoutTexts: await readTextPatterns(sql, words.not, phrases.not),
    afterMs: filters.after,
    beforeMs: filters.before,
  }
}

/**
 * Returns true if the index of channels or users alone decides a match: every candidate from it
 * matches, unless the event is deleted.
 */
export function isCoveredByIndex({
  channelIds,
  users,
  tags,
  sources,
  levels,
  states,
  threads,
  metadata,
  has,
  ...rest
}: ResolvedFilters): boolean {
  const { texts, withoutTexts, withoutChannelIds, withoutUsers, groups } = rest
  const lists = [texts, withoutTexts, withoutChannelIds, ...Object.values(withoutUsers), groups]
  const choices = [tags, sources, levels, states, threads, metadata, has].flatMap(choice => [
    choice.is,
    choice.not,
  ])
  return (
    !(channelIds && users) &&
    [...lists, ...choices, users?.beginnings ?? [], users?.names ?? []].every(
      list => list.length === 0,
    ) &&
    rest.afterMs === null &&
    rest.beforeMs === null
  )
}

/** Looks up users by whole references, and until the deadline by their names. */
async function resolveUsers(
  sql: Queryable,
  { projectId, deadline }: { projectId: string; deadline: number },
  users: readonly string[],
): Promise<ResolvedUsers> {
  const references = new Set<string>()
  const beginnings: string[] = []
  const names: UserName[] = []
  for (const user of users) {
    const isWhole = isWholeName(user)
    const exact = isWhole ? user : readExactUser(user)
    if (exact !== undefined) {
      for (const one of await listReferences(sql, projectId, exact)) references.add(one)
      // A user_id or an alias of several words takes precedence over an equal name of others.
      if (!isWhole || (await isKnown(sql, projectId, exact))) continue
    }
    const timeLimitMs = deadline - performance.now()
    const { text, found } = await findName(sql, projectId, { user, isWhole, timeLimitMs })
    for (const one of found ?? []) references.add(one)
    if (!found) names.push({ text, isWhole })
    else if (!isWhole) beginnings.push(text)
  }
  return { references: [...references], beginnings, names }
}

async function isKnown(sql: Queryable, projectId: string, reference: string): Promise<boolean> {
  const [row] = await sql<[{ known: boolean }]>`
    select ${resolveUser(sql, projectId, reference)} is not null as known
  `
  return row.known
}

/** `found` is null if the users with such a name cannot be listed in this time. */
async function findName(
  sql: Queryable,
  projectId: string,
  { user, isWhole, timeLimitMs }: { user: string; isWhole: boolean; timeLimitMs: number },
): Promise<{ text: string; found: string[] | null }> {
  const [row] = await sql<[{ text: string; found: string | null }]>`
    select
      f.text,
      case when ${timeLimitMs > 0}
        then to_json(references_of_name(
          project => ${projectId}, wanted => f.text, is_whole => ${isWhole}, time_limit_ms => ${timeLimitMs}
        ))::text
      end as found
    from fold_text(${user.trim().replaceAll(/\s+/gu, ' ')}) as f (text)
  `
  return { ...row, found: row.found === null ? null : (JSON.parse(row.found) as string[]) }
}

/** How an event matches a term of a search: `text_patterns` in sql/functions/folded_words.sql. */
export interface TextPattern {
  /** `search_text` of a match has this text. */
  pattern: string
  needle: string
  hasSymbols: boolean
  /** Each is a prefix of at least one token in every match. */
  tokens: string[]
}

/**
 * Returns the pattern of each word and phrase. Those without anything to find have none: they
 * consist of white space or of accents.
 */
export async function readTextPatterns(
  sql: Queryable,
  words: readonly string[],
  phrases: readonly string[] = [],
): Promise<TextPattern[]> {
  const terms = [...words, ...phrases]
  if (terms.length === 0) return []
  const [row] = await sql<[{ patterns: string }]>`
    select coalesce(json_agg(json_build_object(
      'pattern', p.pattern, 'needle', p.needle, 'hasSymbols', p.has_symbols, 'tokens', p.tokens
    ) order by p.ord), '[]')::text as patterns
    from text_patterns(
      ${toArray(terms)}::text[], ${toArray(terms.map((_, n) => n >= words.length))}::boolean[]
    ) p
  `
  // text_patterns returns this shape.
  return JSON.parse(row.patterns) as TextPattern[]
}
