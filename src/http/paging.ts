import { Type, type Static } from '@sinclair/typebox'
import { parseId, type IdPrefix } from '../base/ids.ts'
import type { Page } from './envelope.ts'
import { Text } from './rules.ts'
import { invalidField, type InvalidRequest } from './validation.ts'

export const DEFAULT_PAGE_LIMIT = 50

/** The query of a list whose cursor is the id of a page's last item. */
export const PageQuery = Type.Object({
  cursor: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The `nextCursor` of the previous page.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Items per page.' }),
  ),
})
export type PageQuery = Static<typeof PageQuery>

/**
 * Returns the uuid after which a page begins, and the number of rows to read. One extra row tells
 * whether more follow.
 */
export function parsePageQuery(
  prefix: IdPrefix,
  { cursor, limit = DEFAULT_PAGE_LIMIT }: PageQuery,
): { after: string | undefined; rows: number } {
  const after = cursor === undefined ? undefined : parseId(prefix, cursor)
  if (cursor !== undefined && after === undefined) throw unknownCursor()
  return { after, rows: limit + 1 }
}

/**
 * Returns a page of `items`, which have one extra row if more follow. `cursorOf` returns the cursor
 * after an item.
 */
export function toPage<Item>(
  items: readonly Item[],
  { limit = DEFAULT_PAGE_LIMIT }: PageQuery,
  cursorOf: (item: Item) => string,
): Page<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, nextCursor: items.length > limit && last ? cursorOf(last) : null }
}

/** Returns an opaque cursor that encodes these parts, which must not contain spaces. */
export function toCursor(parts: readonly (string | number)[]): string {
  return Buffer.from(parts.join(' ')).toString('base64url')
}

/**
 * Returns the parts of a cursor, or undefined for the first page. Throws `InvalidRequest` if a part
 * does not match its pattern.
 */
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
  return invalidField('cursor', 'invalid_format', 'Must be a nextCursor value of this list')
}
