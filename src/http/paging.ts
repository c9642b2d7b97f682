import { Type, type Static } from '@sinclair/typebox'
import { parseId, type IdPrefix } from '../ids.ts'
import type { Page } from './envelope.ts'
import { Text } from './rules.ts'
import { invalidField } from './validation.ts'

const DEFAULT_LIMIT = 50

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
export function toSlice(
  prefix: IdPrefix,
  { cursor, limit = DEFAULT_LIMIT }: PageQuery,
): { after: string | undefined; rows: number } {
  const after = cursor === undefined ? undefined : parseId(prefix, cursor)
  if (cursor !== undefined && after === undefined) {
    throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
  }
  return { after, rows: limit + 1 }
}

/** A page out of the rows that `toSlice` asked for; `toCursor` tells an item's id. */
export function toPage<Item>(
  items: readonly Item[],
  { limit = DEFAULT_LIMIT }: PageQuery,
  toCursor: (item: Item) => string,
): Page<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, nextCursor: items.length > limit && last ? toCursor(last) : null }
}
