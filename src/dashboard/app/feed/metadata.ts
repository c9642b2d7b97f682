import type { Event } from '../../../events/schema.ts'
import { splitMetadata } from '../../../events/search-query.ts'

/** Whether an event's metadata has what `meta:` asks for, as Postgres tells: whatever is there as text, but for null. */
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
  // Numbers are equal in any spelling.
  const isSameNumber = typeof found === 'number' && value.trim() !== '' && Number(value) === found
  return isSameNumber || toMetadataText(found) === value
}

/** A value as `meta:` names it. */
export function toMetadataText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
