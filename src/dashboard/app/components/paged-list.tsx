import type { ComponentChildren } from 'preact'
import type { Pages } from './use-pages.ts'
import { Loaded } from './loaded.tsx'

interface PagedListOptions<Item> {
  pages: Pages<Item>
  /** What is said where there is nothing. */
  empty: ComponentChildren
  children(item: Item): ComponentChildren
}

/** A list that is read page by page, in each of its states. */
export function PagedList<Item>({ pages, empty, children }: PagedListOptions<Item>) {
  const { items, isReading, failure, hasMore, readMore } = pages
  const isSettled = items.length > 0 || !isReading
  const refetch = async () => readMore()
  return (
    <>
      <ul class="items" aria-busy={isReading}>
        {items.map(children)}
      </ul>
      <Loaded query={{ data: isSettled && !failure ? items : undefined, failure, refetch }}>
        {() => items.length === 0 && empty}
      </Loaded>
      {hasMore && !isReading && !failure && (
        <button type="button" class="button" onClick={readMore}>
          Show more
        </button>
      )}
    </>
  )
}
