import type { ComponentChildren } from 'preact'
import type { Pages } from './use-pages.ts'
import { Loaded } from './loaded.tsx'

interface PagedListOptions<Item> {
  pages: Pages<Item>
  className?: string
  /** Shown when the list is empty. */
  empty: ComponentChildren
  children(item: Item): ComponentChildren
}

/** A list that is loaded page by page, in each of its states. */
export function PagedList<Item>(options: PagedListOptions<Item>) {
  const { pages, className = 'items', empty, children } = options
  const { items, isLoading, failure, hasMore, loadMore } = pages
  const isSettled = items.length > 0 || !isLoading
  const refetch = async () => loadMore()
  return (
    <>
      <ul class={className} aria-busy={isLoading}>
        {items.map(children)}
      </ul>
      <Loaded query={{ data: isSettled && !failure ? items : undefined, failure, refetch }}>
        {() => items.length === 0 && empty}
      </Loaded>
      {hasMore && !isLoading && !failure && (
        <button type="button" class="button button-plain" onClick={loadMore}>
          Show more
        </button>
      )}
    </>
  )
}
