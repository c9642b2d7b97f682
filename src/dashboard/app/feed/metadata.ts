import type { Event } from '../../../events/schema.ts'
import { splitMetadata } from '../../../events/search-filters.ts'

/** Returns whether metadata matches a `meta:` term. Compares as text; null never matches. */
export function matchesMetadata(event: Event, text: string): boolean {
  const { path, value } = splitMetadata(text) ?? { path: [], value: '' }
  const found = path.reduce<unknown>(
    (one, name) =>
      typeof one === 'object' && one !== null && Object.keys(one).includes(name)
        ? (one as Record<string, unknown>)[name]
        : undefined,
    event.metadata,
  )
  if (found === undefined || found === null) return false
  // Numbers compare by value: 1.0 equals 1.
  const isSameNumber = typeof found === 'number' && value.trim() !== '' && Number(value) === found
  return isSameNumber || toMetadataText(found) === value
}

/** A value as written in a `meta:` term. */
export function toMetadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
