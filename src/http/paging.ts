import { Type, type Static } from '@sinclair/typebox'
import { parseId, type IdPrefix } from '../ids.ts'
import type { Page } from './envelope.ts'
import { Text } from './rules.ts'
import { invalidField, type InvalidRequest } from './validation.ts'

export const DEFAULT_PAGE_LIMIT = 50

/** The query of a list whose cursor is the id of a page's last item. */
export const PageQuery = Type.Object({
  cursor: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The nextCursor of the page before.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Items on the page.' }),
  ),
})
export type PageQuery = Static<typeof PageQuery>

/** Where a page begins, as the uuid of the item before it, and how many rows to ask for: one more than it shows. */
export function parsePageQuery(
  prefix: IdPrefix,
  { cursor, limit = DEFAULT_PAGE_LIMIT }: PageQuery,
): { after: string | undefined; rows: number } {
  const after = cursor === undefined ? undefined : parseId(prefix, cursor)
  if (cursor !== undefined && after === undefined) throw unknownCursor()
  return { after, rows: limit + 1 }
}

/** A page of rows, of which one more was read than the page shows; `cursorOf` returns the cursor that follows an item. */
export function toPage<Item>(
  items: readonly Item[],
  { limit = DEFAULT_PAGE_LIMIT }: PageQuery,
  cursorOf: (item: Item) => string,
): Page<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, nextCursor: items.length > limit && last ? cursorOf(last) : null }
}

/** Matches a uuid in a cursor. */
export const UUID_PATTERN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The opaque cursor of a list that goes on after the item with these parts, which contain no space. */
export function toCursor(parts: readonly (string | number)[]): string {
  return Buffer.from(parts.join(' ')).toString('base64url')
}

/** The parts of a cursor; undefined for the first page. Throws `Invalid` unless each part matches its pattern. */
export function parseCursor(
  cursor: string | undefined,
  patterns: readonly RegExp[],
): string[] | undefined {
  if (cursor === undefined) return undefined
  const parts = Buffer.from(cursor, 'base64url').toString('latin1').split(' ')
  const isOurs =
    parts.length === patterns.length &&
    parts.every((part, nth) => patterns[nth]?.test(part)) &&
    toCursor(parts) === cursor
  if (!isOurs) throw unknownCursor()
  return parts
}

function unknownCursor(): InvalidRequest {
  return invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
}
