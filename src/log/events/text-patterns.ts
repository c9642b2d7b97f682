import { toArray } from '../../database/arrays.ts'
import type { Queryable } from '../../database/sql.ts'

/** How an event matches a term of a search: see `text_patterns` in sql/functions/words.sql. */
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
