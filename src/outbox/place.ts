import { invalidField } from '../http/validation.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The opaque cursor of a list that goes on after the item with these parts. */
export function toPlaceCursor(parts: readonly string[]): string {
  return Buffer.from(parts.join(' ')).toString('base64url')
}

/**
 * The parts of a cursor, by the patterns that they must fit; undefined for the first page. Throws `Invalid` for what is
 * none of ours.
 */
export function parsePlace(
  cursor: string | undefined,
  patterns: readonly RegExp[],
): string[] | undefined {
  if (cursor === undefined) return undefined
  const parts = Buffer.from(cursor, 'base64url').toString('latin1').split(' ')
  const isOurs =
    parts.length === patterns.length &&
    parts.every((part, nth) => patterns[nth]?.test(part)) &&
    toPlaceCursor(parts) === cursor
  if (!isOurs) throw invalidField('cursor', 'invalid_format', 'Must be a nextCursor of this list')
  return parts
}

export const UUID_PART = UUID
export const KIND_PART = /^(webhook|push)$/
/** 0 for a pending delivery, 1 for one that has ended. */
export const RANK_PART = /^[01]$/
