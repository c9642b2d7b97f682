import type { ComponentChildren } from 'preact'
import type { Pages } from '../users/use-pages.ts'
import { Trouble } from './page.tsx'

/** The end of a list that is read page by page: that it is being read, why it could not be, and the way to more. */
export function More<Item>({
  of: { items, isReading, failure, hasMore, readMore },
  nothing,
}: {
  of: Pages<Item>
  /** What is said of an empty list. */
  nothing?: ComponentChildren
}) {
  if (failure) return <Trouble failure={failure} onRetry={readMore} />
  if (isReading) {
    return (
      <p class="aside" role="status">
        Reading …
      </p>
    )
  }
  if (hasMore) {
    return (
      <button type="button" class="quiet-button" onClick={readMore}>
        Show more
      </button>
    )
  }
  return <>{items.length === 0 && nothing}</>
}
